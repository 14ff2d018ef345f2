"""Hooks: explained where there is none, made, tried, turned off, saved by two, deleted; and what they did in a chat."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from popagent_testing.model_replies import Reply, ScriptedCall
from tests.browser.browser import Recorder
from tests.browser.chats import answers, ended, fresh, open_chat, say
from tests.browser.conftest import Axe
from tests.hook_door import HookDoor, denies
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

HOOKS: Final = "/settings/hooks"
SECRET: Final = "a-secret-of-the-guard"
REASON: Final = "Only files below docs/ may be read."
SENTENCE: Final = f"The hook “Guard” refused this: {REASON}"
TOUCHED: Final = ".settings :is(.btn, .input, .segments > *, .check, .hook, select):visible"
LEAST_TARGET: Final = 43.5


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def none_left(talk: Talk, hook_door: HookDoor) -> AsyncIterator[None]:
    """Delete every hook that a test leaves behind: others share the suite."""
    hook_door.forget()
    yield
    for hook in (await talk.json("GET", "/api/hooks"))["items"]:
        await talk.json("DELETE", f"/api/hooks/{hook['id']}")


@pytest.fixture
def hook_door(running_hook_door: HookDoor) -> HookDoor:
    """Where hooks may be posted to."""
    return running_hook_door


async def make(talk: Talk, door: HookDoor, **fields: Any) -> dict[str, Any]:
    body = {"name": "Guard", "event": "PreToolUse", "matcher": "read", "url": f"{door.origin}/guard", **fields}
    made: dict[str, Any] = await talk.json("POST", "/api/hooks", body)
    return made


async def stored(talk: Talk) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await talk.json("GET", "/api/hooks"))["items"]
    return items


def name(page: Page) -> Locator:
    return page.get_by_label("Name", exact=True)


def save(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


async def test_where_there_is_none_it_is_explained_and_one_is_made_and_tried(
    page: Page, talk: Talk, hook_door: HookDoor, axe: Axe
) -> None:
    hook_door.answers["/guard"] = denies(REASON)
    await page.goto(HOOKS)
    await expect(page.get_by_text("A hook is a program or a server of yours")).to_be_visible()
    await expect(page.get_by_label("docs-only.py")).to_contain_text("#!/usr/bin/python3")
    await axe(page)

    await page.get_by_role("link", name="New hook").click()
    await expect(page.get_by_text("Missing: name, address")).to_be_visible()
    await expect(page).to_have_title("New hook, Settings · popagent")
    await expect(page.get_by_role("heading", level=1, name="New hook")).to_be_visible()
    await name(page).fill("Guard")
    await page.get_by_label("Which").fill("read|wri.*")
    await expect(page.get_by_text("Those are now: read, write")).to_be_visible()
    await page.get_by_label("Address").fill(f"{hook_door.origin}/guard")
    await page.get_by_label("Secret").fill(SECRET)
    await axe(page)
    await page.get_by_role("button", name="Create").click()
    await page.get_by_role("button", name="Test", exact=True).click()

    await expect(page.get_by_role("heading", level=1, name="Guard")).to_be_visible()
    await expect(page).to_have_title("Guard, Settings · popagent")
    await expect(page.get_by_role("status").filter(has_text="Refused")).to_contain_text(REASON)
    await expect(page.get_by_label("What it was sent")).to_contain_text('"test": true')
    await expect(page.get_by_label("Secret")).to_have_attribute("placeholder", "kept; type to replace it")
    assert SECRET not in await page.content()
    await axe(page)
    [hook] = await stored(talk)
    assert (hook["name"], hook["matcher"], hook["onFailure"], hook["hasSecret"]) == (
        "Guard",
        "read|wri.*",
        "block",
        True,
    )


async def test_where_no_address_may_be_called_one_sentence_says_what_to_do(page: Page) -> None:
    async def nowhere(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "origins": []})

    await page.route("**/api/hooks", nowhere)
    await page.goto(f"{HOOKS}/new")

    # Each part on a line of its own would be told with line ends between them.
    told = await page.locator(".remark.wait p").inner_text()
    assert "Name its origin in POPAGENT_HOOK_ORIGINS, as http://127.0.0.1:9000, " in told
    assert "\n" not in told


async def test_what_the_server_refuses_is_said_beside_its_field_and_nothing_typed_is_lost(
    page: Page, recorder: Recorder
) -> None:
    recorder.forgive("status of 422")
    await page.goto(f"{HOOKS}/new")
    await name(page).fill("Guard")
    await page.get_by_label("Address").fill("http://elsewhere.example/")

    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("alert")).to_contain_text("POPAGENT_HOOK_ORIGINS")
    await expect(page.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    await page.get_by_role("link", name="All hooks").click()
    await page.get_by_role("link", name="Go on with the new hook").click()

    await expect(page.get_by_label("Address")).to_have_value("http://elsewhere.example/")
    await page.get_by_role("button", name="Discard").click()


async def test_who_saves_second_sees_both_and_loses_nothing(
    page: Page, talk: Talk, hook_door: HookDoor, recorder: Recorder
) -> None:
    recorder.forgive("status of 409", "ERR_FAILED")
    # Deaf, so that the page learns of the other save only from the refusal of its own.
    await page.route(re.compile("/api/events"), lambda route: route.abort())
    hook = await make(talk, hook_door)
    await page.goto(f"{HOOKS}/{hook['id']}")
    await name(page).fill("Mine")
    await page.get_by_label("Order", exact=True).fill("7")

    await talk.json("PATCH", f"/api/hooks/{hook['id']}", {"revision": 0, "name": "Theirs", "timeoutMs": 900})
    await save(page).click()
    dispute = page.get_by_role("alert").filter(has_text="Both are here.")
    await expect(dispute).to_contain_text("Theirs")
    await expect(save(page)).to_be_disabled()
    await dispute.get_by_role("button", name="Keep mine").click()
    await save(page).click()
    await expect(page.get_by_role("button", name="Discard")).to_have_count(0)

    [after] = await stored(talk)
    assert (after["name"], after["orderIndex"], after["timeoutMs"]) == ("Mine", 7, 900)


async def test_hooks_stand_by_event_and_order_and_are_turned_off_and_deleted_with_a_way_back(
    page: Page, talk: Talk, hook_door: HookDoor
) -> None:
    await make(talk, hook_door, name="Later", orderIndex=200)
    await make(talk, hook_door, name="First", orderIndex=1, onFailure="allow")
    await make(talk, hook_door, name="Diary", event="PostToolUse")
    await page.goto(HOOKS)
    asked = page.get_by_role("region", name="A tool is to be used").get_by_role("listitem")
    await expect(asked).to_contain_text(["First", "Later"])
    await expect(asked.first).to_contain_text("if it fails: go on")

    await page.get_by_role("switch", name="“First” is in use").uncheck()
    await expect(page.get_by_role("switch", name="“First” is in use")).not_to_be_checked()
    await page.get_by_role("link", name="Diary").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("link", name="Diary")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("link", name="Diary")).to_be_visible()
    await page.get_by_role("link", name="Later").click()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Dismiss").click()
    await expect(page.get_by_text("“Later” is deleted.")).to_have_count(0)
    # What somebody else does is seen at once, and by then the deletion was carried out.
    await make(talk, hook_door, name="Newest")

    await expect(page.get_by_role("link", name="Newest")).to_be_visible()
    assert [(hook["name"], hook["enabled"]) for hook in await stored(talk)] == [
        ("First", False),
        ("Diary", True),
        ("Newest", True),
    ]


async def test_what_a_hook_refused_is_seen_at_once_and_the_rest_when_it_is_asked_for(
    suite: Suite, page: Page, talk: Talk, hook_door: HookDoor, recorder: Recorder, axe: Axe
) -> None:
    hook_door.answers["/guard"] = denies(REASON)
    await make(talk, hook_door)
    await make(talk, hook_door, name="Diary", event="PostToolUse", matcher="*")
    words = fresh("Read the notes.")
    calls = (ScriptedCall("read", '{"path": "README.md"}'), ScriptedCall("list", "{}"))
    suite.model.script(Reply(tool_calls=calls, when=words), Reply(text="I may not.", after=1))
    await open_chat(page)

    await say(page, words)
    await ended(page)
    answer = answers(page).last
    await expect(answer.get_by_text(SENTENCE)).to_be_visible()
    runs = answer.get_by_role("button", name="2 hook runs, 1 refused")
    await expect(runs).to_have_attribute("aria-expanded", "false")
    await page.reload()
    await expect(answer.get_by_text(SENTENCE)).to_be_visible()
    assert not [request for request in recorder.requests if "/hooks" in request and "/api/sessions/" in request]
    await runs.click()

    listed = answer.get_by_role("region", name="Hooks of this turn").get_by_role("listitem")
    await expect(listed).to_have_count(2)
    await expect(listed.filter(has_text="Guard")).to_contain_text(REASON)
    # The two calls ran side by side, so either may stand first.
    diary = listed.filter(has_text="Diary")
    await diary.get_by_role("button").click()
    await expect(diary).to_contain_text('"tool": "list"')
    await axe(page)


async def test_a_message_that_a_hook_refused_says_so_instead_of_blaming_the_model(
    phone: Page, talk: Talk, hook_door: HookDoor, axe: Axe
) -> None:
    hook_door.answers["/guard"] = denies("No rockets.")
    await make(talk, hook_door, event="UserPromptSubmit", matcher="*")
    await open_chat(phone)

    await say(phone, fresh("Launch it"))
    await ended(phone, "Refused by a hook")

    answer = answers(phone).last
    await expect(answer.get_by_text("The hook “Guard” refused this: No rockets.")).to_have_count(1)
    await expect(answer.get_by_role("link", name="Which model answers")).to_have_count(0)
    await answer.get_by_role("button", name="1 hook run, 1 refused").tap()
    await expect(answer.get_by_role("region", name="Hooks of this turn")).to_contain_text("Something is said")
    scroller = phone.get_by_role("log", name="Conversation")
    assert await scroller.evaluate("each => each.scrollWidth <= each.clientWidth")
    await axe(phone)


async def test_hooks_fit_on_a_phone_and_a_finger(phone: Page, talk: Talk, hook_door: HookDoor, axe: Axe) -> None:
    hook = await make(talk, hook_door, name="A guard with a name that is far too long for a phone", secret=SECRET)
    small = []
    for path in (HOOKS, f"{HOOKS}/{hook['id']}", f"{HOOKS}/new"):
        await phone.goto(path)
        await expect(phone.locator(".skeletons")).to_have_count(0)
        await expect(phone.locator(TOUCHED).first).to_be_visible()
        await axe(phone)
        assert await phone.evaluate("document.querySelector('.settings .scroll').scrollWidth <= innerWidth")
        for target in await phone.locator(TOUCHED).all():
            box = await target.bounding_box()
            if box is not None and box["height"] < LEAST_TARGET:
                small.append((path, await target.inner_text(), box["height"]))

    assert small == []
