"""Tasks: explained where there is none, given and watched to their end, cancelled, resolved; on a phone too."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from popagent_testing.model_replies import Reply, ScriptedCall
from tests.browser.browser import Recorder
from tests.browser.chats import fresh, slowly
from tests.browser.conftest import Axe
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

RESULT: Final = "## What I found\n\nOne link of **188** leads nowhere."
TOUCHED: Final = ".main :is(.btn, .input, .segments > *, .task-row, .task-fold, select, summary):visible"
LEAST_TARGET: Final = 43.5
ENDED_MS: Final = 30_000


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def none_left(suite: Suite, talk: Talk) -> AsyncIterator[None]:
    """Delete every task that a test leaves behind, and what it finds: others share the suite."""
    await _delete_all(talk)
    yield
    suite.model.reset()
    await _delete_all(talk)


async def _delete_all(talk: Talk) -> None:
    while items := (await talk.json("GET", "/api/tasks"))["items"]:
        for task in items:
            # One that still waits or runs is refused, and looked at again when it has ended.
            path = f"/api/tasks/{task['id']}"
            ends = task["state"] in {"completed", "failed", "cancelled", "dead-letter"}
            response = await talk.http.request("DELETE" if ends else "POST", path if ends else f"{path}/cancel")
            assert response.status_code in {200, 404, 409}, response.text


async def give(talk: Talk, prompt: str, **fields: Any) -> dict[str, Any]:
    task: dict[str, Any] = await talk.json("POST", "/api/tasks", {"prompt": prompt, **fields})
    return task


def state(page: Page) -> Locator:
    return page.locator(".main .bar").get_by_role("status")


def refuses(suite: Suite, words: str) -> None:
    """Let the model's server refuse whatever has these words, for good."""
    suite.model.script(Reply(status=400, error="This is too large for the model.", when=words, times=0))


async def test_where_there_is_none_it_is_explained_and_one_is_given_and_watched_to_its_end(
    suite: Suite, page: Page, axe: Axe
) -> None:
    words = fresh("Look for broken links.")
    calls = (ScriptedCall("list", "{}"), ScriptedCall("read", '{"path": "nowhere.md"}'))
    suite.model.script(Reply(text="I look at the pages.", tool_calls=calls, when=words, hold=True), Reply(text=RESULT))
    await page.goto("/tasks")
    await expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()
    await axe(page)

    await page.get_by_role("button", name="Begin with this one").click()
    prompt = page.get_by_label("What is to be done")
    await expect(prompt).to_have_value(re.compile("every link"))
    await prompt.fill(words)
    await axe(page)
    await page.get_by_role("button", name="Give task").click()
    await expect(state(page)).to_have_text("Running")
    await axe(page)
    suite.model.release()

    await expect(state(page)).to_have_text("Done", timeout=ENDED_MS)
    result = page.get_by_role("region", name="Result")
    await expect(result.get_by_role("heading", name="What I found")).to_be_visible()
    work = page.get_by_role("region", name="Work")
    await expect(work.get_by_text("I look at the pages.")).to_be_hidden()
    await work.get_by_role("button", name="Work").click()
    await expect(work.get_by_text("I look at the pages.")).to_be_visible()
    await work.get_by_role("button", name=re.compile("^read")).click()
    await expect(work.get_by_text('"path": "nowhere.md"')).to_be_visible()
    await axe(page)


async def test_what_cannot_be_given_says_why_beside_its_field_and_nothing_typed_is_lost(
    page: Page, talk: Talk, recorder: Recorder
) -> None:
    recorder.forgive("status of 422")
    await page.goto("/tasks/new")
    await expect(page.get_by_role("button", name="Give task")).to_be_disabled()
    await page.get_by_label("What is to be done").fill("Count the pages.")
    await page.get_by_label("Attempts").fill("11")
    await expect(page.get_by_role("alert")).to_contain_text("A whole number from 1 to 10.")
    await expect(page.get_by_role("button", name="Give task")).to_be_disabled()
    await page.get_by_label("Attempts").fill("2")

    refused = '{"error": "No model is called that.", "code": "unknown_model", "field": "model"}'
    await page.route(
        "**/api/tasks", lambda route: route.fulfill(status=422, content_type="application/json", body=refused)
    )
    await page.get_by_role("button", name="Give task").click()
    await expect(page.get_by_role("alert")).to_contain_text("No model is called that.")
    await expect(page.get_by_label("Model")).to_have_attribute("aria-invalid", "true")
    await page.unroute("**/api/tasks")
    await page.get_by_role("link", name="All tasks").click()
    await page.get_by_role("link", name="Go on with it").click()

    await expect(page.get_by_label("What is to be done")).to_have_value("Count the pages.")
    await page.get_by_role("button", name="Discard").click()
    assert (await talk.json("GET", "/api/tasks"))["items"] == []


async def test_the_board_moves_by_itself_is_searched_and_what_runs_is_cancelled(
    suite: Suite, page: Page, talk: Talk, axe: Axe
) -> None:
    words = fresh("Count slowly.")
    suite.model.script(slowly(words, count=5_000))
    await page.goto("/tasks")
    await expect(page.get_by_role("heading", name="No tasks yet")).to_be_visible()

    task = await give(talk, words)
    row = page.get_by_role("region", name="Running").get_by_role("link", name=words)
    await expect(row).to_be_visible()
    await expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Tasks")).to_contain_text(
        "1 running"
    )
    await axe(page)
    await page.keyboard.press("/")
    await page.get_by_role("searchbox", name="Search tasks").fill("nothing like it")
    await expect(page.get_by_role("heading", name="No task is like that")).to_be_visible()
    await page.get_by_role("searchbox", name="Search tasks").fill(words.upper())
    await row.click()
    # What it says is seen as it grows, for longer than six seconds, without being asked for each second.
    await expect(page.get_by_role("log", name="Transcript")).to_contain_text("w40")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await expect(page.get_by_role("log", name="Transcript")).to_contain_text("w700", timeout=ENDED_MS)
    assert len([url for url in asked if f"/api/tasks/{task['id']}/transcript" in url]) <= 2
    await page.get_by_role("button", name="Cancel task").click()
    await page.get_by_role("button", name="Let it go on").click()
    await page.get_by_role("button", name="Cancel task").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()

    await expect(state(page)).to_have_text("Cancelled", timeout=ENDED_MS)
    await page.get_by_role("button", name="More of this task").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page).to_have_url(re.compile("/tasks$"))
    assert (await talk.http.get(f"/api/tasks/{task['id']}")).status_code == 404


async def test_what_is_known_of_the_board_stays_where_it_is_while_the_rest_is_asked(
    suite: Suite, page: Page, talk: Talk
) -> None:
    words = fresh("Move the vault.")
    refuses(suite, words)
    task = await give(talk, words, maxAttempts=1)
    await page.goto(f"/tasks/{task['id']}")
    await expect(state(page)).to_have_text("Dead letter", timeout=ENDED_MS)
    waiting: list[Route] = []

    async def hold(route: Route) -> None:
        waiting.append(route)

    await page.route(re.compile(r"/api/tasks\?state=running"), hold)
    await page.goto("/tasks")
    row = page.get_by_role("region", name="Needs you").get_by_role("link", name=words)
    await expect(row).to_be_visible()
    before = await row.bounding_box()
    await expect(page.locator(".skeletons")).to_be_visible()
    for route in waiting:
        await route.continue_()

    await expect(page.locator(".skeletons")).to_have_count(0)
    assert await row.bounding_box() == before


async def test_what_failed_waits_in_the_inbox_and_is_resolved_with_evidence(
    suite: Suite, page: Page, talk: Talk, axe: Axe
) -> None:
    words = fresh("Move the vault.")
    refuses(suite, words)
    await page.goto("/inbox")
    await expect(page.get_by_role("heading", name="Nothing waits for you.")).to_be_visible()
    await axe(page)

    task = await give(talk, words, maxAttempts=1)
    need = page.get_by_role("list", name="What needs you").get_by_role("listitem")
    await expect(need).to_contain_text("Dead letter")
    await expect(need).to_contain_text("a person decides")
    await expect(page.get_by_role("navigation", name="Main").get_by_role("link", name="Needs you")).to_contain_text("1")
    await axe(page)
    await need.get_by_role("button", name="Resolve…").click()
    dialog = page.get_by_role("dialog", name="Resolve")
    await expect(dialog.get_by_role("button", name="Resolve")).to_be_disabled()
    await dialog.get_by_label("How do you know that it is done?").fill("I moved it by hand.")
    await axe(page)
    await dialog.get_by_role("button", name="Resolve").click()

    await expect(page.get_by_role("heading", name="Nothing waits for you.")).to_be_visible()
    await page.goto(f"/tasks/{task['id']}")
    await expect(state(page)).to_have_text("Done")
    await expect(page.get_by_text("I moved it by hand.")).to_be_visible()
    after = await talk.json("GET", f"/api/tasks/{task['id']}")
    assert (after["state"], after["resolution"]) == ("completed", "I moved it by hand.")


async def test_what_nothing_tries_again_is_tried_once_more_from_the_inbox(
    suite: Suite, page: Page, talk: Talk, axe: Axe
) -> None:
    words = fresh("Weigh the anchor.")
    suite.model.script(Reply(status=400, error="Too large.", when=words), Reply(text="It weighs 200 kg.", when=words))
    task = await give(talk, words, maxAttempts=1)
    await page.goto("/inbox")
    need = page.get_by_role("list", name="What needs you").get_by_role("listitem")
    await expect(need).to_contain_text("Dead letter", timeout=ENDED_MS)

    await need.get_by_role("button", name="Try again…").click()
    await axe(page)
    await page.get_by_role("dialog").get_by_role("button", name="Try again").click()

    await expect(page.get_by_role("heading", name="Nothing waits for you.")).to_be_visible(timeout=ENDED_MS)
    await page.goto(f"/tasks/{task['id']}")
    await expect(state(page)).to_have_text("Done", timeout=ENDED_MS)
    after = await talk.json("GET", f"/api/tasks/{task['id']}")
    assert (after["attemptCount"], after["output"]) == (2, "It weighs 200 kg.")


async def test_what_failed_is_given_again_as_it_was_and_its_specialists_are_told_apart(
    suite: Suite, page: Page, talk: Talk
) -> None:
    words = fresh("Check the sums.")
    given = ScriptedCall("agent-reviewer", '{"prompt": "Add them up once more."}')
    suite.model.script(
        Reply(status=400, error="Too large.", when=words),
        Reply(text="I ask.", tool_calls=(given,), when=words),
        Reply(text="They add up to 42.", when="Add them up once more."),
        Reply(text="The sums are right."),
    )
    task = await give(talk, words, maxAttempts=1, priority=3)
    await page.goto(f"/tasks/{task['id']}")
    await expect(page.get_by_role("alert").filter(has_text="Dead letter")).to_be_visible(timeout=ENDED_MS)

    await page.get_by_role("button", name="Give it as a new one…").click()
    await expect(page.get_by_label("What is to be done")).to_have_value(words)
    await expect(page.get_by_label("Priority")).to_have_value("3")
    await page.get_by_role("button", name="Give task").click()
    await expect(state(page)).to_have_text("Done", timeout=ENDED_MS)
    await page.get_by_role("button", name="Work").click()

    specialist = page.locator(".task-told.specialist")
    await expect(specialist).to_contain_text("Reviewer")
    await expect(specialist).to_contain_text("They add up to 42.")


async def test_tasks_fit_on_a_phone_and_a_finger(suite: Suite, phone: Page, talk: Talk, axe: Axe) -> None:
    words = fresh("Move the vault with a title that is far too long for any phone that one could hold in one hand")
    refuses(suite, words)
    task = await give(talk, words, maxAttempts=1)
    await phone.goto("/inbox")
    await expect(phone.get_by_role("list", name="What needs you")).to_contain_text("Dead letter")
    await expect(phone.locator("nav.tabs").get_by_role("link", name="Needs you")).to_contain_text("1")
    small = []
    for path in ("/inbox", "/tasks", f"/tasks/{task['id']}", "/tasks/new"):
        await phone.goto(path)
        await expect(phone.locator(".skeletons")).to_have_count(0)
        await expect(phone.locator(TOUCHED).first).to_be_visible()
        await axe(phone)
        assert await phone.evaluate("document.querySelector('.main .scroll').scrollWidth <= innerWidth"), path
        assert await phone.evaluate("document.querySelector('.main .bar').scrollWidth <= innerWidth"), path
        for target in await phone.locator(TOUCHED).all():
            box = await target.bounding_box()
            if box is not None and box["height"] < LEAST_TARGET:
                small.append((path, await target.inner_text(), box["height"]))

    assert small == []
    await phone.goto("/tasks")
    row = phone.get_by_role("region", name="Needs you").get_by_role("link", name=words)
    await expect(row.get_by_text("Orchestrator")).to_be_in_viewport(ratio=1)
    filters = phone.get_by_role("group", name="State")
    await expect(filters.get_by_role("button", name="Finished")).to_be_in_viewport(ratio=1)
    assert await filters.evaluate("each => each.scrollWidth <= each.clientWidth")
