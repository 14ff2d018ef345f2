"""Work that is given to specialists: who does what is seen as it happens, and is the same when it is opened again."""

from __future__ import annotations

import re
from typing import Final

import orjson
import pytest
from playwright.async_api import Locator, Page, expect

from popagent_testing.model_replies import Reply, ScriptedCall
from tests.browser.chats import answers, ended, numbered, open_chat, say
from tests.browser.conftest import Axe
from tests.suite import Suite

pytestmark = pytest.mark.timeout(120)

QUESTION: Final = "Ask both about the gauge, please."
LOOKS: Final = "The wind notes are long. "
VERDICT: Final = "The wind notes are **right**.\n\nNothing is missing."
SHIFTS: Final = """() => {
  window.shifted = 0;
  new PerformanceObserver(list => {
    for (const each of list.getEntries()) if (!each.hadRecentInput) window.shifted += each.value;
  }).observe({type: 'layout-shift', buffered: false});
}"""


def gives(agent: str, prompt: str) -> ScriptedCall:
    return ScriptedCall(f"agent-{agent}", orjson.dumps({"prompt": prompt}).decode())


def script_two(suite: Suite) -> None:
    """One specialist looks, says much and waits to be released; the other one's model fails."""
    suite.model.script(
        Reply(
            text="I have both look.",
            tool_calls=(gives("reviewer", "Read the wind notes."), gives("implementer", "Mend the broken vane.")),
            when=QUESTION,
        ),
        Reply(status=500, error="broken", when="Mend the broken vane.", times=0),
        Reply(
            text=LOOKS * 30, tool_calls=(ScriptedCall("read", '{"path": "README.md"}'),), when="Read the wind notes."
        ),
        Reply(text=VERDICT, hold=True, after=2, when="It measures wind and rain."),
    )
    suite.model.set_default(Reply(text="One said yes, the other could not say."))


def card(page: Page) -> Locator:
    return page.get_by_role("region", name="2 specialists")


def lane(page: Page, name: str) -> Locator:
    return card(page).get_by_role("listitem").filter(has=page.get_by_role("button", name=re.compile(f"^{name}")))


def head(page: Page, name: str) -> Locator:
    return lane(page, name).locator(".lane-head")


async def work_shown(page: Page) -> None:
    """Wait until one specialist waits for the model and the other one has failed."""
    await expect(head(page, "Reviewer")).to_contain_text("Thinks")
    await expect(head(page, "Reviewer")).to_contain_text(re.compile(r"step 2 of \d+"))
    await expect(head(page, "Implementer")).to_contain_text("Failed")


async def test_two_specialists_are_seen_at_work_and_read_the_same_when_the_chat_is_opened_again(
    suite: Suite, page: Page, axe: Axe
) -> None:
    script_two(suite)
    await open_chat(page)
    await page.evaluate(SHIFTS)

    await say(page, QUESTION)
    await work_shown(page)

    await expect(card(page).locator("header")).to_contain_text("at once")
    await expect(answers(page).last.get_by_text("A specialist works")).to_be_visible()
    assert await page.evaluate("window.shifted") < 0.05
    await head(page, "Reviewer").focus()
    await page.keyboard.press("Enter")
    work = lane(page, "Reviewer").get_by_role("group")
    await expect(work).to_contain_text("Read the wind notes.")
    await expect(work).to_contain_text((LOOKS * 30).strip())
    await expect(work.get_by_text("README.md", exact=True)).to_be_visible()
    await axe(page)
    before = await work.inner_text()
    await page.reload()
    await work_shown(page)
    await head(page, "Reviewer").click()
    assert await work.inner_text() == before

    suite.model.release()
    await ended(page)

    await expect(head(page, "Reviewer")).to_contain_text("Done")
    await expect(head(page, "Reviewer")).to_contain_text("The wind notes are right.")
    await expect(head(page, "Reviewer")).to_contain_text(re.compile("2 steps · .* m?s"))
    await expect(work.get_by_role("heading", name="What the orchestrator was given")).to_be_visible()
    await expect(work.get_by_text("Nothing is missing.")).to_have_count(1)
    await expect(work).to_contain_text(re.compile(r"scripted-model · 2 of at most \d+ steps · .* tokens read"))
    await head(page, "Implementer").click()
    assert "{" not in await card(page).inner_text()
    await axe(page)
    await page.wait_for_function("() => document.querySelector('.lane-work .prose:not(.plain)')")
    after = await card(page).inner_text()
    await page.reload()
    await ended(page)
    for name in ("Reviewer", "Implementer"):
        await head(page, name).click()
    await page.wait_for_function("() => document.querySelector('.lane-work .prose:not(.plain)')")
    assert await card(page).inner_text() == after


async def test_a_turn_that_is_stopped_leaves_no_specialist_at_work(suite: Suite, page: Page) -> None:
    script_two(suite)
    await open_chat(page)
    await say(page, QUESTION)
    await work_shown(page)

    await page.keyboard.press("Shift+Escape")
    await ended(page, "Stopped by you")

    await expect(head(page, "Reviewer")).to_contain_text("Stopped")
    await expect(card(page).get_by_text("Thinks")).to_have_count(0)


async def test_lanes_fit_on_a_phone_and_open_by_touch(suite: Suite, phone: Page, axe: Axe) -> None:
    script_two(suite)
    await open_chat(phone)
    await phone.evaluate(SHIFTS)

    await say(phone, QUESTION)
    await work_shown(phone)

    assert await phone.evaluate("window.shifted") < 0.05
    before = await head(phone, "Reviewer").bounding_box()
    assert before is not None
    await head(phone, "Reviewer").tap()
    await expect(head(phone, "Reviewer")).to_have_css("-webkit-tap-highlight-color", "rgba(0, 0, 0, 0)")
    work = lane(phone, "Reviewer").get_by_role("group")
    await expect(work).to_contain_text("The wind notes are long.")
    scroller = phone.get_by_role("log", name="Conversation")
    assert await scroller.evaluate("each => each.scrollWidth <= each.clientWidth")
    box = await work.bounding_box()
    assert box is not None
    assert box["height"] <= 844 * 0.6 + 1
    # What is opened stays where it is, though the end of the chat is followed.
    opened = await head(phone, "Reviewer").bounding_box()
    assert opened is not None
    assert opened["y"] == before["y"]
    await axe(phone)
    suite.model.release()
    await ended(phone)


async def test_what_specialists_write_moves_nobody_who_reads_above(suite: Suite, page: Page) -> None:
    suite.model.script(
        Reply(
            text=numbered(900),
            tool_calls=(gives("reviewer", "Count up."), gives("implementer", "Go on.")),
            when=QUESTION,
        ),
        Reply(text=numbered(1_500), token_delay_s=0.003, when="Count up."),
        Reply(text=numbered(1_500), token_delay_s=0.003, when="Go on."),
    )
    suite.model.set_default(Reply(text="Both have counted."))
    await open_chat(page)
    await say(page, QUESTION)
    await expect(head(page, "Reviewer")).to_contain_text("Writes")
    await page.wait_for_function("() => document.querySelector('.answer .prose:not(.plain)')")
    await page.get_by_role("log", name="Conversation").hover()
    await page.mouse.wheel(0, -250)
    await expect(page.get_by_role("button", name="New text")).to_be_visible()
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await page.evaluate(SHIFTS)
    top = "() => Math.round(document.querySelector('.answer .prose p').getBoundingClientRect().top)"
    before = await page.evaluate(top)
    said = await head(page, "Reviewer").text_content() or ""

    await expect(head(page, "Reviewer")).not_to_have_text(said)
    await ended(page)

    await expect(head(page, "Implementer")).to_contain_text("Done")
    assert await page.evaluate(top) == before
    assert await page.evaluate("window.shifted") < 0.05
