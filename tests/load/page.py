"""The page in the system's Chromium: first load, typing and moving while an answer streams, long chats, long streams.

Times are the browser's own, from an input or a navigation to the frame that shows it. The model is scripted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from playwright.async_api import Browser

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.browser.chats import composer, say, wait_for_words
from tests.browser.long_chats import CLIMB, article, seed
from tests.browser.slow_texts import SLOW
from tests.load.browsing import TIMEOUT_MS, Memory, Tab, chrome, open_tab
from tests.load.figures import Figures, percentile
from tests.suite import Suite

TOKEN_S: Final = 0.01
STREAM_TIMEOUT_MS: Final = 600_000
# An hour of a model that writes 20 tokens a second, told 25 times as fast.
HOUR_S: Final = 3_600
HOUR_TOKENS_PER_S: Final = 20
FASTER: Final = 25
FEWER: Final = 20
# The icon of the tab is not among them: nothing waits for it.
FILES: Final = frozenset({"document", "script", "stylesheet", "font"})
API: Final = frozenset({"fetch", "xhr"})
# Between two keys of a fast typist.
PAUSES_S: Final = (0.06, 0.16)
MEAN_PAUSE_S: Final = sum(PAUSES_S) / 2
# A text that was rendered, not one that waits for the renderer.
MARKDOWN: Final = ".prose:not(.plain)"
# Just below where a text counts as made to be slow (chat/tangled.ts).
NEARLY_SLOW: Final = {
    "a table nearly too wide": "|" + "a|" * 100 + "\n|" + "-|" * 100 + "\n" + ("|" + "b|" * 100 + "\n") * 36,
    "nearly too many brackets": "[" * 1_490,
    "nearly too much emphasis": "~~a~~ " * 1_490,
}


@dataclass(frozen=True)
class Counts:
    """How much is measured."""

    loads: int = 20
    characters: int = 200
    messages: int = 2_000
    opens: int = 10
    hour_tokens: int = HOUR_S * HOUR_TOKENS_PER_S
    slow: list[str] = field(default_factory=lambda: [*SLOW, *NEARLY_SLOW])


QUICK = Counts(
    loads=2, characters=10, messages=200, opens=1, hour_tokens=2_000, slow=["20,000 brackets", "a wide table"]
)


async def measure_loads(browser: Browser, suite: Suite, count: int, figures: Figures) -> None:
    """Each by a browser that has nothing in its cache and no connection."""
    usable, needed, asked = [], Counter[str](), []
    for _ in range(count):
        async with open_tab(browser, suite, "/") as tab:
            at = float(await tab.seen("usable"))
            usable.append(at)
            await tab.settled()
            before = float(await tab.page.evaluate("performance.timeOrigin")) + at
            early = [each for each in tab.requests if each.timing["startTime"] <= before]
            needed = Counter(each.resource_type for each in early if each.resource_type in FILES)
            asked.append(len([each for each in early if each.resource_type in API]))
    figures.add("first load to usable composer, p50", percentile(usable, 0.5), "ms")
    figures.add("first load to usable composer, p95", percentile(usable, 0.95), "ms", 1_000)
    figures.add(f"files it took ({', '.join(f'{n} {kind}' for kind, n in needed.items())})", needed.total(), "", 5)
    figures.add("API requests begun by then, none is waited for", max(asked), "")


async def measure_stream(browser: Browser, suite: Suite, characters: int, figures: Figures) -> None:
    """Type the next question while a long answer is being written, and look at what moves until it has ended."""
    answer = article(500 + round(characters * MEAN_PAUSE_S / TOKEN_S * 1.5))
    suite.model.script(Reply(text=answer, token_delay_s=TOKEN_S))
    async with open_tab(browser, suite) as tab:
        await say(tab.page, "Tell me about the station.")
        await wait_for_words(tab.page, 400)
        inputs, slow, text = await type_slowly(tab, characters)
        await tab.ended(timeout_ms=STREAM_TIMEOUT_MS)
        assert await composer(tab.page).input_value() == text
        await tab.settled()
        shifts, tasks = await tab.seen("shifts"), await tab.seen("tasks")
        cpu_ms = await tab.cpu_ms()
    figures.add("input to painted character while 100 tokens/s stream, p50", percentile(inputs, 0.5), "ms")
    figures.add("input to painted character while 100 tokens/s stream, p95", percentile(inputs, 0.95), "ms", 50)
    figures.add("the same, worst", max(inputs), "ms")
    figures.add("the same by Event Timing, worst", max(slow, default=16), "ms")
    figures.add("largest layout shift while an answer streams and ends", max(shifts, default=0), "", 0.05)
    figures.add("all layout shifts of it", sum(shifts), "")
    figures.add("longest task while it streams", max(tasks, default=50), "ms")
    figures.add("main thread for a token and its share of the typing", cpu_ms / len(answer.split()), "ms CPU")


async def type_slowly(tab: Tab, count: int) -> tuple[list[float], list[float], str]:
    """Type so many characters as a fast typist would; return both kinds of waits and what was typed."""
    text = "".join(islice(cycle("and how often does it rain there? "), count))
    await composer(tab.page).focus()
    await tab.forget()
    for character in text:
        await tab.page.keyboard.press("Space" if character == " " else character)
        await asyncio.sleep(random.uniform(*PAUSES_S))
    return await tab.seen("inputs"), await tab.seen("slowInputs"), text


async def click_chat(tab: Tab, session: str, painted: str) -> float:
    """Open a chat by its row; return the ms from the click to the frame that shows what `painted` finds."""
    await tab.page.evaluate(f"() => {{ window.opened = window.painted(() => {painted}) }}")
    await tab.page.locator(f'a.session-link[href^="/chat/{session}"]').click()
    async with asyncio.timeout(TIMEOUT_MS / 1_000):
        return float(await tab.page.evaluate("async () => await window.opened - window.seen.clicked"))


async def measure_long_chat(browser: Browser, suite: Suite, counts: Counts, figures: Figures) -> None:
    """Open it from another chat, on a page that has not seen it; then go up through all of it."""
    session = new_id()
    last = await seed(suite, session, counts.messages)
    waits: list[float] = []
    for attempt in range(counts.opens):
        async with open_tab(browser, suite) as tab:
            await tab.settled()
            await tab.forget()
            waits.append(await click_chat(tab, session, f"document.querySelector('#m-{last} {MARKDOWN}')"))
            if attempt == counts.opens - 1:
                opening = await tab.seen("tasks")
                await tab.forget()
                climbed = await tab.page.evaluate(CLIMB)
                tasks = await tab.seen("tasks")
                memory = await tab.memory()
    name = f"a chat of {counts.messages:,} messages"
    figures.add(f"opening {name}, p50", percentile(waits, 0.5), "ms")
    figures.add(f"opening {name}, p95", percentile(waits, 0.95), "ms", 500)
    figures.add(f"opening {name}, longest task", max(opening, default=50), "ms")
    figures.add(f"up through {name}, messages seen", climbed["messages"], "", counts.messages, "higher")
    figures.add("the same, longest task", max(tasks, default=50), "ms", 200)
    figures.add("the same, worst jump of what is read", climbed["worst"], "px", 2)
    figures.add("the same, frames with a jump", climbed["jumps"], f"of {climbed['frames']}")
    figures.add("the same, heap at the top", memory.heap_mib, "MiB")


async def measure_hour(browser: Browser, suite: Suite, tokens: int, figures: Figures) -> None:
    """One answer of an hour, told faster; it must hold no more than the same text in few deltas: nothing for each."""
    text = article(tokens)
    words = len(text.split())
    size = f"a stream of {words:,} tokens"
    told = await stream_whole(browser, suite, Reply(text=text, token_delay_s=1 / (HOUR_TOKENS_PER_S * FASTER)))
    few = await stream_whole(browser, suite, Reply(text=text, chunks=words // FEWER, token_delay_s=TOKEN_S))
    async with open_tab(browser, suite, f"/chat/{told.session}") as tab:
        await tab.ended()
        await tab.settled()
        loaded = await tab.memory()
    for share, memory in zip((0, 25, 50, 75, 100), told.memory, strict=True):
        figures.add(f"heap at {share} % of {size}", memory.heap_mib, "MiB")
    figures.add("heap of a page that only loaded it", loaded.heap_mib, "MiB")
    last = told.memory[-1]
    ratio = last.heap_mib / few.memory[-1].heap_mib
    # React keeps two versions of what was drawn more than once, which few deltas do to fewer blocks.
    figures.add(f"heap after {size} to that of {FEWER} times fewer", ratio, "", 1.25)
    figures.add(f"nodes after {size} to those of a page that loaded it", last.nodes / loaded.nodes, "", 1.1)
    figures.add(f"listeners after {size} to those of a page that loaded it", last.listeners / loaded.listeners, "", 1.1)
    figures.add(f"longest task of {size}", told.longest_ms, "ms")
    figures.add(f"main thread for a token of {size}", told.cpu_ms / words, "ms CPU")


@dataclass(frozen=True)
class Told:
    """One answer, watched to its end."""

    session: str
    memory: list[Memory]
    longest_ms: float
    cpu_ms: float


async def stream_whole(browser: Browser, suite: Suite, answer: Reply) -> Told:
    """Ask for an answer, and look at the memory before it, after each quarter and at its end."""
    suite.model.script(answer)
    async with open_tab(browser, suite) as tab:
        await tab.settled()
        taken = [await tab.memory()]
        session = await say(tab.page, "Tell me everything.")
        for share in (0.25, 0.5, 0.75):
            await tab.until(WRITTEN, share * len(answer.text), STREAM_TIMEOUT_MS)
            taken.append(await tab.memory())
        await tab.ended(STREAM_TIMEOUT_MS)
        await tab.settled()
        taken.append(await tab.memory())
        longest_ms = max(await tab.seen("tasks"), default=50)
        return Told(session, taken, longest_ms, await tab.cpu_ms())


WRITTEN: Final = "size => (document.querySelector('.answer .prose')?.textContent.length ?? 0) >= .85 * size"


async def measure_slow_texts(browser: Browser, suite: Suite, names: list[str], figures: Figures) -> None:
    """Texts made to tangle a renderer: opened by a click on a page that has its renderer, and streamed in 20 pieces."""
    texts = SLOW | NEARLY_SLOW
    for name in names:
        session = new_id()
        suite.model.script(Reply(text=texts[name], chunks=20))
        async with suite.talk() as talk:
            await talk.chat("Show it.", session)
        async with open_tab(browser, suite) as tab:
            await tab.settled()
            shown = await click_chat(tab, session, f"document.querySelector('.answer:has(footer.stamp) {MARKDOWN}')")
            await tab.page.locator('.pane a[href="/chat/new"]').click()
            await tab.forget()
            suite.model.script(Reply(text=texts[name], chunks=20, token_delay_s=0.05))
            await say(tab.page, "Show it again.")
            await tab.ended(timeout_ms=STREAM_TIMEOUT_MS)
            tasks = await tab.seen("tasks")
        figures.add(f"{name}, painted", shown, "ms", 1_000)
        figures.add(f"{name}, longest task while it streams", max(tasks, default=50), "ms")


async def measure(suite: Suite, counts: Counts, figures: Figures) -> None:
    """Measure everything on a running suite."""
    async with chrome() as browser:
        await measure_loads(browser, suite, counts.loads, figures)
        await measure_stream(browser, suite, counts.characters, figures)
        await measure_long_chat(browser, suite, counts, figures)
        await measure_slow_texts(browser, suite, counts.slow, figures)
        await measure_hour(browser, suite, counts.hour_tokens, figures)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="little of each: proves that it works, measures little")
    given = options.parse_args()
    figures = Figures("page")
    with tempfile.TemporaryDirectory(dir=figures.folder) as folder, Suite(Path(folder)) as suite:
        asyncio.run(measure(suite, QUICK if given.quick else Counts(), figures))
    figures.write()


if __name__ == "__main__":
    main()
