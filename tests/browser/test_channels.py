"""Channels: explained, written into, answered by agents; read upwards, never lost on the way; on a phone too."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.browser.browser import Recorder
from tests.browser.channel_rows import drop_channel, make_channel
from tests.browser.chats import fresh
from tests.browser.conftest import Axe
from tests.browser.long_chats import CLIMB
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

TOUCHED: Final = ".main :is(.btn, .choice, .mention, .post-answers):visible"
LEAST_TARGET: Final = 43.5
ENDED_MS: Final = 30_000
LOST: Final = "ERR_FAILED"


@pytest_asyncio.fixture(loop_scope="session")
async def channel(suite: Suite) -> AsyncIterator[str]:
    """A channel of this test, in which nothing was written; asked for before a page, it goes after it."""
    name = f"c{new_id()[-8:]}"
    await make_channel(suite, name)
    yield name
    suite.model.reset()
    await drop_channel(suite, name)


@pytest_asyncio.fixture(loop_scope="session")
async def long_channel(suite: Suite) -> AsyncIterator[str]:
    """One with 120 messages, of which 100 were read."""
    name = f"c{new_id()[-8:]}"
    await make_channel(suite, name, 120, read=100)
    yield name
    await drop_channel(suite, name)


async def open_channel(page: Page, channel: str, place: str = "") -> None:
    await page.goto(f"/channels/{channel}{place}")
    await expect(field(page)).to_be_visible()
    await expect(page.locator(".skeletons")).to_have_count(0, timeout=ENDED_MS)


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^(Write in|Answer in)"))


def posts(page: Page) -> Locator:
    return page.get_by_role("log").get_by_role("article")


async def messages(talk: Talk, channel: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await talk.json("GET", f"/api/channels/{channel}/messages"))["items"]
    return items


async def post(page: Page, text: str) -> None:
    await field(page).fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()


async def test_an_empty_channel_explains_itself_and_what_is_written_stands_there_for_everybody(
    channel: str, page: Page, talk: Talk, axe: Axe
) -> None:
    await open_channel(page, channel)
    await expect(page.get_by_role("heading", name=f"Nothing was written in #{channel} yet")).to_be_visible()
    await axe(page)
    other = await page.context.new_page()
    await open_channel(other, channel)

    await page.get_by_role("button", name="Begin with this one").click()
    await expect(field(page)).to_have_value(re.compile("^@researcher"))
    await expect(page.get_by_role("button", name="Asks Researcher")).to_be_visible()
    await field(page).fill("Good **morning**.")
    await expect(page.get_by_role("button", name="Ask an agent")).to_be_visible()
    await page.keyboard.press("Enter")

    for each in (page, other):
        await expect(posts(each)).to_have_count(1)
        await expect(posts(each).get_by_text("morning")).to_have_css("font-weight", "700")
    await expect(page.get_by_role("heading", name="Today")).to_be_visible()
    await axe(page)
    await page.reload()
    await expect(posts(page).first).to_contain_text("Good morning.")
    [message] = await messages(talk, channel)
    assert (message["body"], message["run"]) == ("Good **morning**.", None)


async def test_an_agent_is_named_by_keyboard_works_and_answers_in_the_thread(
    channel: str, suite: Suite, page: Page, axe: Axe
) -> None:
    words = fresh("how many herons?")
    suite.model.script(Reply(text="**Seven** herons stand there, and one more flies.", when=words, hold=True, after=5))
    await open_channel(page, channel)

    await field(page).press_sequentially("@re")
    await expect(page.get_by_role("option")).to_have_count(3)
    await axe(page)
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(field(page)).to_have_value("@researcher ")
    await field(page).press_sequentially(words)
    await page.keyboard.press("Enter")
    asked = posts(page).first
    # What is said of the answer so far is seen while it is written.
    growing = asked.get_by_role("group", name="Researcher works on it")
    await expect(growing).to_contain_text("Seven herons", timeout=ENDED_MS)
    await axe(page)
    suite.model.release()

    await expect(posts(page)).to_have_count(2, timeout=ENDED_MS)
    await expect(growing).to_have_count(0)
    await expect(asked).to_contain_text("Researcher answered")
    reply = posts(page).nth(1)
    await expect(reply).to_have_accessible_name("Researcher")
    await expect(reply).to_contain_text("Seven herons stand there, and one more flies.")
    await reply.get_by_role("link", name=re.compile("^answers “@researcher how many")).click()
    await expect(page.get_by_role("heading", name="Thread", exact=True)).to_be_visible()
    await expect(posts(page)).to_have_count(2)
    await post(page, "Thank you.")
    await expect(posts(page)).to_have_count(3)
    await axe(page)
    await reply.get_by_role("link", name=re.compile(f"^Task: @researcher {re.escape(words)}$")).click()
    await expect(page).to_have_url(re.compile("/tasks/"))
    await expect(page.get_by_role("region", name="Result")).to_contain_text("Seven herons")


async def test_what_a_post_has_started_is_cancelled_where_it_stands(channel: str, suite: Suite, page: Page) -> None:
    words = fresh("count the reeds")
    suite.model.script(Reply(text="One, two.", when=words, hold=True))
    await open_channel(page, channel)
    await post(page, f"@researcher {words}")
    asked = posts(page).first
    await expect(asked).to_contain_text("Researcher works on it", timeout=ENDED_MS)

    await asked.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel the task").click()

    await expect(asked).to_contain_text("Cancelled", timeout=ENDED_MS)
    await expect(asked.get_by_role("button", name="Cancel")).to_have_count(0)


async def test_a_post_outlives_a_lost_network_a_lost_answer_and_a_reload_and_stands_there_once(
    channel: str, page: Page, talk: Talk, recorder: Recorder, axe: Axe
) -> None:
    recorder.forgive(LOST)
    address = f"**/api/channels/{channel}/messages"

    async def answer_is_lost(route: Route) -> None:
        if route.request.method == "POST":
            await route.fetch()
        await route.abort()

    await page.route(address, lambda route: route.abort())
    await open_channel(page, channel)
    await post(page, "Into nothing.")
    unsent = page.get_by_role("article", name="You, not sent yet")
    await expect(unsent.get_by_role("alert")).to_contain_text("Not sent.")
    await field(page).fill("begun")
    await axe(page)
    await page.reload()
    await expect(unsent).to_contain_text("Into nothing.")
    await expect(field(page)).to_have_value("begun")
    assert await messages(talk, channel) == []
    await page.unroute(address)
    await page.route(address, answer_is_lost)
    await unsent.get_by_role("button", name="Send now").click()

    # It was taken, which the stream tells.
    await expect(unsent).to_have_count(0)
    await expect(posts(page)).to_have_count(1)
    await page.unroute(address)
    await page.reload()
    await expect(posts(page)).to_have_count(1)
    assert [each["body"] for each in await messages(talk, channel)] == ["Into nothing."]


async def test_what_is_refused_says_why_and_goes_back_to_where_one_writes(
    channel: str, page: Page, recorder: Recorder
) -> None:
    recorder.forgive("status of 422")
    refused = '{"error": "There is no such workspace.", "code": "invalid_input", "field": "workspaceId"}'
    await page.route(
        f"**/api/channels/{channel}/messages",
        lambda route: route.fulfill(status=422, content_type="application/json", body=refused),
    )
    await open_channel(page, channel)
    await post(page, "Where?")
    unsent = page.get_by_role("article", name="You, not sent yet")
    await expect(unsent.get_by_role("alert")).to_contain_text("There is no such workspace.")

    await unsent.get_by_role("button", name="Take it back").click()

    await expect(unsent).to_have_count(0)
    await expect(field(page)).to_have_value("Where?")


async def test_what_is_new_is_counted_found_and_read_when_it_was_seen(
    long_channel: str, page: Page, talk: Talk, axe: Axe
) -> None:
    async def unread() -> int:
        items = (await talk.json("GET", "/api/channels"))["items"]
        return next(int(each["unread"]) for each in items if each["id"] == long_channel)

    await page.goto("/tasks")
    place = page.get_by_role("navigation", name="Main").get_by_role("link", name="Channels")
    await expect(place.locator(".badge")).to_be_visible()
    await open_channel(page, long_channel)
    await expect(page.locator(".new-here")).to_be_in_viewport()
    await expect(posts(page).filter(has_text="Line 101")).to_be_in_viewport()
    await expect(page.get_by_text("Line 120", exact=True)).not_to_be_in_viewport()
    row = page.get_by_role("complementary", name="Channels").get_by_role("link", name=long_channel)
    await expect(row).to_contain_text("unread")
    await axe(page)
    assert await unread() > 0

    await page.get_by_role("button", name="To the newest").click()
    await expect(page.get_by_text("Line 120", exact=True)).to_be_in_viewport()

    await expect(row).not_to_contain_text("unread")
    assert await unread() == 0
    await page.reload()
    await expect(page.get_by_text("Line 120", exact=True)).to_be_in_viewport()
    await expect(page.locator(".new-here")).to_have_count(0)


async def test_history_is_read_upwards_without_a_jump_and_a_link_opens_its_place(long_channel: str, page: Page) -> None:
    await open_channel(page, long_channel)
    await page.get_by_role("button", name="To the newest").click()
    await expect(page.get_by_text("Line 120", exact=True)).to_be_in_viewport()

    climbed = await page.evaluate(CLIMB)
    assert climbed["messages"] == 120
    assert climbed["worst"] <= 2, climbed
    days = await page.locator("h2.day").all_inner_texts()
    assert days[-2:] in (["Yesterday", "Today"], [days[-2], "Yesterday"])
    await page.goto("/tasks")
    await open_channel(page, long_channel, "#7")
    await expect(page.get_by_text("Line 7", exact=True)).to_be_in_viewport()
    await expect(posts(page)).not_to_have_count(120)
    await page.get_by_role("button", name="Show what came after").click()
    await expect(page.get_by_text("Line 40", exact=True)).to_be_attached()
    await page.get_by_role("button", name="To the newest").click()

    await expect(page.get_by_text("Line 120", exact=True)).to_be_in_viewport()


async def test_a_message_is_changed_and_deleted_with_a_way_back(channel: str, page: Page, talk: Talk, axe: Axe) -> None:
    await talk.json("POST", f"/api/channels/{channel}/messages", {"body": "The station is open."})
    await open_channel(page, channel)
    first = posts(page).first
    await first.hover()
    await first.get_by_role("button", name="More of what You wrote").click()
    await page.get_by_role("menuitem", name="Change it").click()
    await axe(page)
    await page.get_by_role("textbox", name="Change what you wrote").fill("The station is closed.")
    await page.keyboard.press("Control+Enter")
    await expect(first).to_contain_text("The station is closed.")
    await expect(first).to_contain_text("changed")

    async def delete() -> None:
        await first.hover()
        await first.get_by_role("button", name="More of what You wrote").click()
        await page.get_by_role("menuitem", name="Delete").click()
        await expect(first).to_contain_text("This message was deleted.")

    await delete()
    await page.get_by_role("button", name="Undo").click()
    await expect(first).to_contain_text("The station is closed.")
    await delete()
    await page.get_by_role("button", name="Dismiss").click()
    await expect(page.locator(".toast")).to_have_count(0)
    await page.reload()

    await expect(first).to_contain_text("This message was deleted.")
    assert [each["body"] for each in await messages(talk, channel)] == [""]


async def test_who_answers_posts_that_name_nobody_is_set_and_said_before_sending(
    channel: str, page: Page, talk: Talk, axe: Axe
) -> None:
    await open_channel(page, channel)
    await page.get_by_role("link", name="Who answers here").click()
    await page.get_by_role("switch", name="Posts that name nobody").check()
    await page.get_by_label("Who answers them").select_option("researcher")
    await axe(page)
    try:
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("Saved. The next post goes by it.")).to_be_visible()
        await open_channel(page, channel)
        await expect(page.get_by_role("button", name="Asks Researcher")).to_be_visible()

        # Told at once where it is shown.
        await talk.json("PATCH", "/api/channels/settings", {"agentId": None})
        await expect(page.get_by_role("button", name="Asks Orchestrator")).to_be_visible()
    finally:
        await talk.json("PATCH", "/api/channels/settings", {"autoReply": False, "agentId": None})
    await expect(page.get_by_role("button", name="Ask an agent")).to_be_visible()


async def test_who_follows_misses_nothing_over_a_killed_gateway(
    channel: str, suite: Suite, page: Page, talk: Talk, recorder: Recorder
) -> None:
    recorder.forgive(r"ERR_(CONNECTION|EMPTY|INCOMPLETE|NETWORK)", "status of 50")
    await talk.json("POST", f"/api/channels/{channel}/messages", {"body": "Before it."})
    await open_channel(page, channel)
    await expect(posts(page)).to_have_count(1)

    await suite.restart("gateway")
    async with suite.talk() as after:
        await after.json("POST", f"/api/channels/{channel}/messages", {"body": "After it."})

    await expect(posts(page)).to_have_count(2, timeout=ENDED_MS)
    await expect(posts(page).last).to_contain_text("After it.")


async def test_channels_fit_on_a_phone_and_a_finger(
    long_channel: str, suite: Suite, phone: Page, talk: Talk, axe: Axe
) -> None:
    words = fresh("a question that is longer than any phone is wide, as questions at times are, or so one hears")
    suite.model.script(Reply(text="Seven.", when=words, hold=True))
    await phone.goto("/tasks")
    more = phone.locator("nav.tabs").get_by_role("button", name=re.compile("^More"))
    await expect(more).to_have_accessible_name(re.compile("unread"))
    await more.click()
    await phone.get_by_role("menuitem", name=re.compile("^Channels: ")).click()
    await axe(phone)
    await phone.get_by_role("link", name=long_channel).click()
    await field(phone).press_sequentially("@res")
    await axe(phone)
    await phone.get_by_role("option", name=re.compile("^Researcher")).tap()
    await expect(field(phone)).to_have_value("@researcher ")
    await field(phone).press_sequentially(words)
    await phone.get_by_role("button", name="Send", exact=True).tap()
    await expect(posts(phone).last).to_contain_text("Researcher works on it", timeout=ENDED_MS)
    await field(phone).press_sequentially("@")
    await expect(phone.get_by_role("option").first).to_be_visible()
    await axe(phone)

    small = []
    for target in await phone.locator(TOUCHED).all():
        box = await target.bounding_box()
        if box is not None and box["height"] < LEAST_TARGET:
            small.append((await target.inner_text(), box["height"]))
    assert small == []
    assert await phone.evaluate("document.querySelector('.main .scroll').scrollWidth <= innerWidth")
    suite.model.release()
    await expect(posts(phone).last).to_contain_text("Seven.", timeout=ENDED_MS)
    await phone.get_by_role("link", name="All channels").tap()
    await expect(phone.get_by_role("complementary", name="Channels")).to_be_visible()
