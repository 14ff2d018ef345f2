"""One turn as a person sees it: it streams, ends in a stamp, and is the same when the chat is opened again."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, Route, expect

from popagent_testing.model_replies import Reply, ScriptedCall
from tests.browser.browser import Recorder
from tests.browser.chats import (
    answers,
    chats,
    composer,
    ended,
    is_whole_so_far,
    numbered,
    open_chat,
    say,
    slowly,
    stamp,
    wait_for_words,
    written,
)
from tests.browser.conftest import Axe, NewPage
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)


async def test_an_answer_with_thoughts_and_a_tool_reads_the_same_when_it_is_opened_again(
    suite: Suite, page: Page, axe: Axe
) -> None:
    call = ScriptedCall("read", '{"path": "README.md"}')
    suite.model.script(
        Reply(reasoning="I look into the file first.", tool_calls=(call,)),
        Reply(text="# Result\n\nIt is **good**:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n```"),
    )

    await open_chat(page)
    await say(page, "Read the file, please.")
    await ended(page)

    answer = answers(page).last
    await answer.get_by_role("button", name=re.compile("^Thought")).click()
    await expect(answer.get_by_text("I look into the file first.").last).to_be_visible()
    await answer.get_by_role("button", name=re.compile("^read")).click()
    await expect(answer.get_by_role("heading", name="Output")).to_be_visible()
    await expect(answer.get_by_role("button", name=re.compile(r"README\.md.*ms"))).to_be_visible()
    await expect(answer.get_by_role("table")).to_be_visible()
    await expect(answer.get_by_text("x = 1")).to_be_visible()
    await expect(answer.get_by_text(re.compile(r"\d+ tokens"))).to_be_visible()
    await axe(page)
    shown = await answer.locator(".prose").inner_text()
    await page.reload()
    await ended(page)
    # Until its renderer is there, a text is shown as it is written.
    await expect(answers(page).last.get_by_role("table")).to_be_visible()
    assert await answers(page).last.locator(".prose").inner_text() == shown


async def test_the_trace_of_an_answer_is_one_click_away(page: Page) -> None:
    await open_chat(page)
    await say(page, "hello trace")
    await ended(page)

    await answers(page).last.get_by_role("link", name="Trace").click()

    await page.wait_for_url(re.compile(r"/observe/traces/[0-9a-f]{32}$"))


async def test_a_stopped_answer_keeps_its_text_and_can_go_on(suite: Suite, page: Page) -> None:
    suite.model.script(slowly("stop me"))
    await open_chat(page)
    await say(page, "stop me soon")
    await wait_for_words(page, 20)

    await page.keyboard.press("Shift+Escape")
    await ended(page, "Stopped by you")

    words = await written(page)
    assert len(words) >= 20
    assert is_whole_so_far(words)
    suite.model.set_default(Reply(text="the rest"))
    await answers(page).last.get_by_role("button", name="Continue").click()
    await expect(answers(page)).to_have_count(2)
    await ended(page)


async def test_the_end_of_a_turn_is_asked_for_once(page: Page, recorder: Recorder) -> None:
    await open_chat(page)
    session = await say(page, "hello")
    await ended(page)
    for number in range(2, 4):
        recorder.requests.clear()
        await composer(page).fill("and again")
        await page.keyboard.press("Enter")
        await expect(answers(page)).to_have_count(number)
        await ended(page)
        # The list hears of the end by the event that the chat hears.
        await expect(chats(page).get_by_label("Running")).to_have_count(0)
        await page.evaluate("() => new Promise(done => setTimeout(done, 0))")

        asked = [each for each in recorder.requests if each.startswith(f"GET /api/sessions/{session}")]
        assert len(asked) == 1


async def test_a_failed_answer_says_why_once_and_can_be_tried_again(suite: Suite, page: Page, axe: Axe) -> None:
    suite.model.script(Reply(status=500, error="broken", when="fails once", times=3))
    await open_chat(page)
    await say(page, "this fails once")
    await ended(page, "Failed")

    reason = page.get_by_text(re.compile("model server at .* failed"))
    await expect(reason).to_have_count(1)
    await axe(page)
    await answers(page).last.get_by_role("button", name="Retry").click()
    await ended(page)
    await expect(reason).to_have_count(0)
    await expect(page.get_by_text("2 / 2")).to_be_visible()


async def test_a_model_that_says_nothing_and_one_that_breaks_off_are_told_in_words(suite: Suite, page: Page) -> None:
    suite.model.script(
        Reply(fault="empty", when="say nothing", times=0),
        Reply(text=numbered(40), fault="cut", after=20, when="break off", times=0),
    )
    await open_chat(page)
    await say(page, "say nothing")
    await ended(page, "Failed")

    await say(page, "break off")
    await expect(answers(page)).to_have_count(2)
    await ended(page, "Failed")

    assert (await written(page))[:5] == ["w0", "w1", "w2", "w3", "w4"]
    for number in range(2):
        await expect(answers(page).nth(number).locator(".reason.is-fail")).to_have_count(1)


async def test_versions_of_an_answer_and_of_a_question_stay_reachable(suite: Suite, page: Page) -> None:
    suite.model.script(Reply(text="first answer"), Reply(text="second answer"), Reply(text="answer to the edit"))
    await open_chat(page)
    await say(page, "the question")
    await ended(page)
    await answers(page).last.get_by_role("button", name="Regenerate").click()
    await expect(page.get_by_text("second answer")).to_be_visible()
    await expect(page.get_by_text("2 / 2")).to_be_visible()

    await page.get_by_role("button", name="Version before").click()
    await expect(page.get_by_text("first answer")).to_be_visible()
    said = page.get_by_role("article", name="You")
    await said.hover()
    await said.get_by_role("button", name="Edit").click()
    await page.get_by_role("textbox", name="Change what you said").fill("another question")
    await said.get_by_role("button", name="Send").click()
    await expect(page.get_by_text("answer to the edit")).to_be_visible()
    await ended(page)

    await page.reload()
    await expect(page.get_by_text("another question")).to_be_visible()
    await said.get_by_role("button", name="Version before").click()
    await expect(said.get_by_text("the question", exact=True)).to_be_visible()
    await expect(page.get_by_text("second answer")).to_be_visible()
    await answers(page).get_by_role("button", name="Version before").click()
    await expect(page.get_by_text("first answer")).to_be_visible()


async def test_words_that_were_not_taken_go_back_to_the_composer(
    suite: Suite, page: Page, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive("status of 409", "status of 503")
    suite.model.script(slowly("the first device", count=100))
    await open_chat(page)
    session = await say(page, "hello")
    await ended(page)
    other = await new_page(path=f"/chat/{session}")
    # The second device has not heard yet that something runs.
    await other.route("**/api/events**", lambda route: route.abort())
    await other.reload()
    recorder.forgive("api/events")
    await expect(answers(other)).to_have_count(1)

    await say(page, "the first device")
    await composer(other).fill("the second device")
    await other.keyboard.press("Enter")

    await expect(other.get_by_role("alert").first).to_be_visible()
    await expect(composer(other)).to_have_value("the second device")
    await ended(page)


async def test_words_that_may_not_have_arrived_outlive_a_reload(page: Page, recorder: Recorder) -> None:
    # Nothing arrived: who asks for that chat before the reload hears that there is none.
    recorder.forgive("ERR_FAILED", r"status of 404 .*/api/sessions/")
    await open_chat(page)
    for address in ("**/api/chat", "**/api/sessions/*"):
        await page.route(address, lambda route: route.abort())
    await composer(page).fill("Did this arrive?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Did this arrive?", exact=True)).to_be_visible()
    await expect(composer(page)).to_have_value("")
    await page.wait_for_function("() => localStorage.getItem('popagent.unsure.new') !== null")

    await page.unroute_all()
    await page.reload()

    await expect(composer(page)).to_have_value("Did this arrive?")
    await composer(page).fill("")


async def test_escape_leaves_the_field_and_comes_back_to_it(page: Page) -> None:
    await open_chat(page)
    await expect(composer(page)).to_be_focused()

    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")

    await expect(composer(page)).to_be_focused()
    await expect(composer(page)).to_have_value("")


async def test_a_draft_is_kept_for_each_chat(page: Page) -> None:
    await open_chat(page)
    session = await say(page, "a chat with a draft")
    await ended(page)

    await composer(page).fill("not sent yet")
    await page.get_by_role("link", name="New chat").click()
    await expect(composer(page)).to_have_value("")
    await composer(page).fill("another one")
    await page.goto(f"/chat/{session}")

    await expect(composer(page)).to_have_value("not sent yet")
    await page.goto("/chat/new")
    await expect(composer(page)).to_have_value("another one")
    await composer(page).fill("")


async def is_at_end(page: Page) -> None:
    """Wait until the end of the text is in view, as it is in every painted frame of a text that is followed."""
    await page.wait_for_function(
        "() => { const box = document.querySelector('.talk-scroll');"
        " return box.scrollHeight - box.clientHeight - box.scrollTop < 48 }"
    )


async def test_a_reader_is_never_moved_and_finds_the_end_again(suite: Suite, page: Page) -> None:
    # Long enough to be stopped at the end, however slow the machine is.
    suite.model.script(slowly("scroll", count=4_000, delay_s=0.004))
    await open_chat(page)
    await say(page, "scroll while I read")
    await wait_for_words(page, 900)
    log = page.get_by_role("log")
    await is_at_end(page)

    await log.hover()
    await page.mouse.wheel(0, -300)
    await page.wait_for_function("() => document.querySelector('.pill')")
    before = await log.evaluate("box => box.scrollTop")
    words = len(await written(page))
    await wait_for_words(page, words + 200)

    assert await log.evaluate("box => box.scrollTop") == before
    await page.get_by_role("button", name="New text").click()
    await page.wait_for_function("() => !document.querySelector('.pill')")
    await is_at_end(page)
    await page.get_by_role("button", name="Stop turn").click()
    await ended(page, "Stopped by you")


async def test_two_devices_watch_one_turn_and_either_may_stop_it(suite: Suite, page: Page, new_page: NewPage) -> None:
    suite.model.script(slowly("together", count=2_000))
    await open_chat(page)
    session = await say(page, "a first word")
    await ended(page)
    other = await new_page(path=f"/chat/{session}")
    await ended(other)

    await say(page, "look at this together")
    await wait_for_words(other, 30)
    assert is_whole_so_far(await written(other))
    await expect(other.get_by_text("look at this together")).to_be_visible()
    await other.get_by_role("button", name="Stop turn").click()

    await ended(page, "Stopped by you")
    await ended(other, "Stopped by you")
    assert await written(page) == await written(other)


async def test_a_second_tab_learns_of_a_chat_made_elsewhere(talk: Talk, page: Page) -> None:
    await expect(composer(page)).to_be_visible()

    await talk.chat("made by the command line, seen in the list")

    await expect(chats(page).get_by_text("made by the command line")).to_be_visible()


async def test_a_chat_on_a_phone_is_a_page_of_its_own(suite: Suite, phone: Page, axe: Axe) -> None:
    suite.model.set_default(Reply(text="fits"))
    await open_chat(phone)
    await say(phone, "from the phone, at such length that it takes more than a line")
    await ended(phone)
    await axe(phone)
    assert await phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    for name in ("Search in this chat", re.compile("^Actions for from the phone")):
        await expect(phone.get_by_role("main").get_by_role("button", name=name)).to_be_in_viewport(ratio=1)

    await phone.get_by_role("link", name="All chats").click()
    await expect(phone.get_by_role("heading", name="Chats")).to_be_visible()
    await expect(composer(phone)).to_have_count(0)
    await expect(phone.get_by_role("link", name="New chat")).to_be_in_viewport(ratio=1)
    await axe(phone)
    await phone.get_by_role("link", name=re.compile("from the phone")).first.click()

    await expect(stamp(phone, "Done")).to_be_visible()


async def test_on_a_phone_a_long_name_of_a_model_leaves_a_short_one_of_a_workspace_whole(phone: Page) -> None:
    model = "qwen2.5-coder-1.5b-instruct-with-a-long-name"

    async def other_model(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "defaultModel": model})

    async def other_names(route: Route) -> None:
        answer = await route.fetch()
        told = await answer.json()
        told["items"] = [{**each, "name": "calc"} for each in told["items"]]
        await route.fulfill(response=answer, json=told)

    await phone.route("**/api/models", other_model)
    await phone.route("**/api/workspaces", other_names)
    await open_chat(phone)
    await expect(phone.get_by_role("button", name=f"Model: {model}")).to_be_in_viewport(ratio=1)

    place = phone.get_by_role("button", name="Workspace: calc").locator(".cut")
    assert await place.evaluate("each => each.scrollWidth <= each.clientWidth")
