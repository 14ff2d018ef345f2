"""Schedules: explained, seen before they are saved, run by hand, paused, saved by two, deleted; on a phone too."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from popagent_testing.model_replies import Reply
from tests.browser.browser import Recorder
from tests.browser.chats import fresh
from tests.browser.conftest import Axe, NewPage
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

SCHEDULES: Final = "/schedules"
TOUCHED: Final = ".main :is(.btn, .input, .check, .schedule-link, select):visible"
LEAST_TARGET: Final = 43.5
# By its own clock a browser there is always hours away from a server that reads UTC.
ELSEWHERE: Final = "Asia/Tokyo"


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def none_left(talk: Talk) -> AsyncIterator[None]:
    """Delete what a test leaves behind, and what it finds: others share the suite."""
    await _delete_all(talk)
    yield
    await _delete_all(talk)


async def _delete_all(talk: Talk) -> None:
    for schedule in await stored(talk):
        await talk.json("DELETE", f"/api/schedules/{schedule['id']}")
    while items := (await talk.json("GET", "/api/tasks"))["items"]:
        for task in items:
            ends = task["state"] in {"completed", "failed", "cancelled", "dead-letter"}
            path = f"/api/tasks/{task['id']}"
            response = await talk.http.request("DELETE" if ends else "POST", path if ends else f"{path}/cancel")
            assert response.status_code in {200, 404, 409}, response.text


async def make(talk: Talk, **fields: Any) -> dict[str, Any]:
    body = {"name": "Digest", "prompt": "Sum up the week.", "cron": "0 9 * * MON", **fields}
    made: dict[str, Any] = await talk.json("POST", "/api/schedules", body)
    return made


async def stored(talk: Talk) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await talk.json("GET", "/api/schedules"))["items"]
    return items


def name(page: Page) -> Locator:
    return page.get_by_label("Name", exact=True)


def save(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


def meaning(page: Page) -> Locator:
    return page.get_by_role("status", name="What this rule means")


async def test_a_rule_is_seen_in_words_and_local_time_then_saved_and_run_by_hand(
    suite: Suite, new_page: NewPage, talk: Talk, recorder: Recorder, axe: Axe
) -> None:
    recorder.forgive("status of 422")
    words = fresh("Sum up what changed.")
    suite.model.script(Reply(text="Nothing changed.", when=words))
    page = await new_page(path=SCHEDULES, timezone_id=ELSEWHERE)
    await expect(page.get_by_role("heading", name="No schedules yet")).to_be_visible()
    await axe(page)

    await page.get_by_role("button", name="Begin with this one").click()
    await expect(meaning(page)).to_contain_text("At 08:30 on Monday through Friday")
    await expect(meaning(page).get_by_role("listitem")).to_have_count(5)
    await expect(meaning(page)).to_contain_text(ELSEWHERE)
    await page.get_by_label("When").fill("61 * * * *")
    await expect(page.get_by_role("alert")).to_contain_text("61")
    await expect(page.get_by_label("When")).to_have_attribute("aria-invalid", "true")
    # Its place stays: what is below would jump at every key.
    await expect(meaning(page)).to_contain_text("once the rule is right")
    await expect(save(page)).to_be_disabled()
    await page.get_by_role("button", name="Every day at 7").click()
    await expect(meaning(page)).to_contain_text("At 07:00 every day")
    await page.get_by_label("What is to be done").fill(words)
    await axe(page)
    await save(page).click()
    await page.get_by_role("button", name="Run now").click()

    history = page.get_by_role("region", name="History")
    await expect(history.get_by_role("listitem")).to_contain_text("by hand")
    await expect(history.get_by_role("listitem")).to_contain_text("Done", timeout=30_000)
    await axe(page)
    await history.get_by_role("link", name=re.compile("Open the task")).click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("Nothing changed.")
    await page.get_by_role("complementary", name="Facts").get_by_role("link", name="Morning look").click()
    await expect(name(page)).to_have_value("Morning look")
    [schedule] = await stored(talk)
    assert (schedule["cron"], schedule["prompt"], schedule["lastRun"]["outcome"]) == ("0 7 * * *", words, "started")


async def test_a_schedule_is_paused_and_goes_on_and_deleted_with_a_way_back(page: Page, talk: Talk, axe: Axe) -> None:
    await make(talk)
    await make(talk, name="Links", cron="@hourly")
    await page.goto(SCHEDULES)
    row = page.get_by_role("list", name="Schedules").get_by_role("listitem").filter(has_text="Links")
    await expect(row).to_contain_text("Did not run yet")
    await axe(page)

    await page.get_by_role("switch", name="“Links” is in use").uncheck()
    await expect(row).to_contain_text("Paused")
    await page.get_by_role("switch", name="“Links” is in use").check()
    await expect(row).not_to_contain_text("Paused")
    await page.get_by_role("link", name="Links").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("link", name="Links")).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_role("link", name="Links")).to_be_visible()
    await page.get_by_role("link", name="Digest").click()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Dismiss").click()
    await expect(page.get_by_text("“Digest” is deleted.")).to_have_count(0)
    # What somebody else does is seen at once, and by then the deletion was carried out.
    await make(talk, name="Newest")

    await expect(page.get_by_role("link", name="Newest")).to_be_visible()
    assert [(each["name"], each["enabled"]) for each in await stored(talk)] == [("Links", True), ("Newest", True)]


async def test_who_saves_second_sees_both_and_loses_nothing(page: Page, talk: Talk, recorder: Recorder) -> None:
    recorder.forgive("status of 409", "ERR_FAILED")
    # Deaf, so that the page learns of the other save only from the refusal of its own.
    await page.route(re.compile("/api/events"), lambda route: route.abort())
    schedule = await make(talk)
    await page.goto(f"{SCHEDULES}/{schedule['id']}")
    await name(page).fill("Mine")
    await page.get_by_label("Attempts").fill("5")

    theirs = {"revision": 0, "name": "Theirs", "catchUpMinutes": 60}
    await talk.json("PATCH", f"/api/schedules/{schedule['id']}", theirs)
    await save(page).click()
    dispute = page.get_by_role("alert").filter(has_text="Both are here.")
    await expect(dispute).to_contain_text("Theirs")
    await expect(save(page)).to_be_disabled()
    await dispute.get_by_role("button", name="Keep mine").click()
    await save(page).click()
    await expect(page.get_by_role("button", name="Discard")).to_have_count(0)

    [after] = await stored(talk)
    assert (after["name"], after["maxAttempts"], after["catchUpMinutes"]) == ("Mine", 5, 60)


async def test_schedules_fit_on_a_phone_and_a_finger(phone: Page, talk: Talk, axe: Axe) -> None:
    schedule = await make(talk, name="A digest with a name that is far too long for a phone")
    small = []
    for path in (SCHEDULES, f"{SCHEDULES}/{schedule['id']}", f"{SCHEDULES}/new"):
        await phone.goto(path)
        await expect(phone.locator(".skeletons")).to_have_count(0)
        await expect(phone.locator(TOUCHED).first).to_be_visible()
        await axe(phone)
        assert await phone.evaluate("document.querySelector('.main .scroll').scrollWidth <= innerWidth"), path
        for target in await phone.locator(TOUCHED).all():
            box = await target.bounding_box()
            if box is not None and box["height"] < LEAST_TARGET:
                small.append((path, await target.inner_text(), box["height"]))

    assert small == []
