"""What a model writes is hostile until shown to be text: nothing runs, nothing is fetched, nothing hangs."""

from __future__ import annotations

import time
from typing import Final

import pytest
from playwright.async_api import Page, expect

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.browser.browser import Recorder
from tests.browser.chats import answers, ended, open_chat, say
from tests.browser.slow_texts import SLOW
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

FOREIGN: Final = "https://attacker.example"
HOSTILE: Final = {
    "image": f"![pixel]({FOREIGN}/pixel.png)",
    "reference image": f"![pixel][x]\n\n[x]: {FOREIGN}/pixel.png",
    "html image": f'<img src="{FOREIGN}/p.png" onerror="window.pwned = 1">',
    "script": "<script>window.pwned = 1</script>",
    "svg": '<svg onload="window.pwned = 1"><image href="https://attacker.example/a.svg"/></svg>',
    "style": f"<style>@import url({FOREIGN}/x.css); * {{ display: none }}</style>",
    "frame": f'<iframe src="{FOREIGN}"></iframe><object data="{FOREIGN}"></object><base href="{FOREIGN}">',
    "form": f'<form action="{FOREIGN}"><input name="key"><button>Send</button></form>',
    "script link": "[click](javascript:window.pwned=1) <javascript:window.pwned=1>",
    "encoded script link": "[click](&#106;avascript:window.pwned=1) [two](java\tscript:window.pwned=1)",
    "data link": "[click](data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==)",
    "file link": "[passwords](file:///etc/passwd) [own](blob:http://x) ![f](file:///etc/passwd)",
    "details": f'<details open ontoggle="window.pwned = 1"><summary>x</summary><video src="{FOREIGN}/v"></video>',
    "math": "$$\\href{javascript:window.pwned=1}{x}$$ and $\\url{x}$",
    "diagram": '```mermaid\ngraph TD\nA["<img src=x onerror=window.pwned=1>"]\n```',
    "ansi": "\x1b[31mred\x1b[0m \x1b]8;;https://attacker.example\x07link\x1b]8;;\x07 \x07\x08\x00",
}


async def show(suite: Suite, talk: Talk, page: Page, text: str) -> float:
    """Show an answer with this text, and return the seconds until it was painted."""
    session = new_id()
    suite.model.script(Reply(text=text, chunks=20))
    await talk.chat("show it", session)
    started = time.perf_counter()
    await page.goto(f"/chat/{session}")
    await ended(page)
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return time.perf_counter() - started


async def test_hostile_text_is_inert(suite: Suite, talk: Talk, page: Page, recorder: Recorder) -> None:
    text = "\n\n".join(f"**{name}**\n\n{source}" for name, source in HOSTILE.items())

    await show(suite, talk, page, text)

    answer = answers(page).last
    await expect(answer.get_by_text("ansi")).to_be_visible()
    assert await page.evaluate("() => window.pwned") is None
    found = "img, script, iframe, object, embed, form, style, video, svg image, base, .prose input, .prose [onerror]"
    assert await answer.locator(found).count() == 0
    addresses = await answer.locator(".prose a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert all(address.startswith(("http://", "https://", "mailto:", "#")) for address in addresses), addresses
    rel = await answer.locator(".prose a").evaluate_all("links => links.map(link => link.rel)")
    assert all("noopener" in each and "noreferrer" in each for each in rel)
    assert recorder.unforgiven() == []


@pytest.mark.parametrize("name", SLOW)
async def test_a_text_made_to_be_slow_is_shown(suite: Suite, talk: Talk, page: Page, name: str) -> None:
    await show(suite, talk, page, SLOW[name])

    # How long it took is a figure of `make bench NAME=page`; here it must not hang.
    await expect(answers(page).last).to_be_visible()


async def test_direction_controls_do_not_reorder_what_stands_beside_them(suite: Suite, page: Page) -> None:
    hidden = "safe \u202egnp.exe\u202c \u2066x\u2069"
    suite.model.script(Reply(text=f"A file: {hidden}\n\n`{hidden}`\n\nשלום עולם"))
    await open_chat(page)
    await say(page, f"what is {hidden}?")
    await ended(page)

    for place in (page.locator(".said-text").last, answers(page).last.locator(".prose")):
        assert "\u202e" not in await place.inner_text()
        assert "U+202E" in await place.inner_text()
