"""Traces: the list follows the turns, the waterfall is walked by keys, facts, logs, and a store that is away."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, expect

from popagent_testing.model_replies import Reply, ScriptedCall
from tests.browser.browser import Recorder
from tests.browser.conftest import Axe
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

TRACE = re.compile(r"/observe/traces/[0-9a-f]{32}")
STORED_MS = 15_000


def traces(page: Page, title: str) -> Locator:
    """The rows of a chat in the list of traces."""
    return page.get_by_role("list", name="Traces, newest first").get_by_role("link", name=title)


def spans(page: Page) -> Locator:
    """The rows of the waterfall that are drawn."""
    return page.get_by_role("treegrid", name="Spans").locator("[role=row][aria-level]")


async def a_turn_with_tools(suite: Suite, talk: Talk, session: str, text: str) -> None:
    suite.model.script(
        Reply(tool_calls=(ScriptedCall("list", '{"path": "."}'), ScriptedCall("read", '{"path": "README.md"}'))),
        Reply(text="It measures wind."),
    )
    await talk.chat(text, session)


async def open_trace(page: Page, session: str, title: str) -> None:
    await page.goto(f"/observe?session={session}")
    await traces(page, title).click(timeout=STORED_MS)
    await expect(spans(page).first).to_be_visible()


async def test_a_turn_comes_into_the_list_by_itself_and_its_spans_are_walked_by_keys(
    suite: Suite, talk: Talk, page: Page, axe: Axe
) -> None:
    await page.goto("/observe")
    await expect(page.get_by_role("heading", name="Observe")).to_be_visible()

    await a_turn_with_tools(suite, talk, "observed", "Walk my spans")
    await traces(page, "Walk my spans").click(timeout=STORED_MS)
    await expect(spans(page).filter(has_text="scripted-model")).to_have_count(2)
    await axe(page)
    await spans(page).first.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(spans(page)).to_have_count(1)
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("End")
    await page.keyboard.press("Enter")

    facts = page.get_by_role("complementary", name="Chosen span")
    await expect(facts).to_contain_text("scripted-model")
    await expect(facts).to_contain_text("Tokens out")
    await expect(page).to_have_url(re.compile(r"\?span="))
    await page.reload()
    await expect(page.get_by_role("row", selected=True)).to_contain_text("scripted-model")
    await expect(page.get_by_role("link", name="Open chat")).to_have_attribute("href", "/chat/observed")


async def test_a_running_trace_is_watched_to_its_end(suite: Suite, talk: Talk, page: Page) -> None:
    suite.model.script(Reply(text="one two three four five six", hold=True, after=3))
    turn = asyncio.create_task(talk.chat("Run while I look", "watched"))

    await page.goto("/observe?status=running")
    await traces(page, "Run while I look").click(timeout=STORED_MS)
    header = page.get_by_role("main").locator("header")
    await expect(header).to_contain_text("Running")
    await expect(spans(page).get_by_label("runs").last).to_be_visible(timeout=STORED_MS)
    suite.model.release()
    await turn

    await expect(header).to_contain_text("Done", timeout=STORED_MS)
    await expect(spans(page).get_by_label("runs")).to_have_count(0)


async def test_a_turn_that_a_person_stopped_is_called_so(suite: Suite, talk: Talk, page: Page) -> None:
    suite.model.script(Reply(text="one two three", hold=True, after=2))
    turn = asyncio.create_task(talk.chat("Stop me in the middle", "halted"))
    await page.goto("/observe?session=halted")
    await expect(traces(page, "Stop me in the middle")).to_contain_text("Running", timeout=STORED_MS)

    await talk.json("POST", "/api/chat/halted/stop")
    await turn

    await expect(traces(page, "Stop me in the middle")).to_contain_text("Stopped", timeout=STORED_MS)
    await traces(page, "Stop me in the middle").click()
    await expect(page.get_by_role("main").locator("header")).to_contain_text("Stopped")
    await expect(spans(page).filter(has_text="turn").get_by_label("stopped").first).to_be_visible()


async def test_the_id_of_a_turn_that_was_pasted_leads_to_its_trace(suite: Suite, talk: Talk, page: Page) -> None:
    await a_turn_with_tools(suite, talk, "pasted", "Find me by my turn")
    await page.goto("/observe?session=pasted")
    await expect(traces(page, "Find me by my turn")).to_be_visible(timeout=STORED_MS)
    listed = await talk.json("GET", "/api/observability/traces?sessionId=pasted")

    field = page.get_by_role("search").get_by_role("textbox")
    await field.fill("no id of anything")
    await field.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("no id")
    await field.fill(listed["items"][0]["turnId"])
    await field.press("Enter")

    await expect(page).to_have_url(TRACE)


async def test_logs_of_a_trace_lead_to_their_spans(suite: Suite, talk: Talk, page: Page) -> None:
    await a_turn_with_tools(suite, talk, "logged", "Say what you logged")
    await open_trace(page, "logged", "Say what you logged")

    await page.get_by_role("button", name="Logs").click()
    table = page.get_by_role("table", name="Log records of this trace, oldest first")
    await expect(table).to_contain_text("turns-ended", timeout=STORED_MS)
    await table.get_by_role("row").filter(has_text="turns-ended").get_by_role("button", name="turn").click()

    await expect(page.get_by_role("row", selected=True)).to_contain_text("turn")


@pytest.mark.full
async def test_a_store_that_is_away_leaves_the_list_and_says_so(
    suite: Suite, talk: Talk, page: Page, recorder: Recorder
) -> None:
    recorder.forgive(r"status of 50\d")
    await a_turn_with_tools(suite, talk, "kept", "Stay in the list")
    await page.goto("/observe")
    await expect(traces(page, "Stay in the list")).to_be_visible(timeout=STORED_MS)

    suite.pause("observability")
    try:
        await talk.chat("Work goes on", "goes-on")
        notice = page.get_by_role("alert").filter(has_text="Store unreachable; work goes on.")
        await expect(notice).to_be_visible(timeout=20_000)
        await expect(traces(page, "Stay in the list")).to_be_visible()
    finally:
        suite.resume("observability")

    await expect(traces(page, "Work goes on")).to_be_visible(timeout=30_000)
    await expect(notice).to_have_count(0)


async def test_on_a_phone_facts_are_a_sheet_that_back_closes(suite: Suite, talk: Talk, phone: Page, axe: Axe) -> None:
    await a_turn_with_tools(suite, talk, "in-hand", "Look at me on a phone")
    await open_trace(phone, "in-hand", "Look at me on a phone")
    await axe(phone)

    await spans(phone).filter(has_text="Orchestrator").tap()
    sheet = phone.get_by_role("dialog", name="Facts of Orchestrator")
    await expect(sheet).to_contain_text("Tokens in")
    await axe(phone)
    await phone.go_back()

    await expect(sheet).to_have_count(0)
    await expect(phone).to_have_url(TRACE)


async def test_equal_spans_of_a_long_trace_are_one_row_that_opens(suite: Suite, talk: Talk, page: Page) -> None:
    for step in range(20):
        # All different: a call that repeats an earlier one would not be carried out.
        patterns = [f'{{"pattern": "wind{step}-{number}"}}' for number in range(30)]
        suite.model.script(Reply(tool_calls=tuple(ScriptedCall("grep", pattern) for pattern in patterns)))
    suite.model.script(Reply(text="Enough."))
    await talk.chat("Call many tools", "many")
    await open_trace(page, "many", "Call many tools")

    steps = spans(page).filter(has_text="step ×21")
    await expect(steps).to_be_visible(timeout=STORED_MS)
    await expect(steps).to_have_attribute("aria-expanded", "false")
    await steps.focus()
    await page.keyboard.press("ArrowRight")
    await expect(spans(page).filter(has_text="grep ×30").first).to_be_visible()
    await page.keyboard.press("End")

    await expect(spans(page).last).to_be_focused()
    assert await spans(page).count() < 100
