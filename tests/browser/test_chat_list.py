"""The list of chats: found, named, filed, taken away and brought back, and never two truths of one name."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from popagent_testing.model_replies import Reply
from popagent_testing.suite_bus import until
from tests.browser.browser import Recorder
from tests.browser.chats import answers, chats, composer, ended, fresh, open_chat, say
from tests.browser.conftest import Axe
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)


async def begin(page: Page, title: str) -> str:
    await open_chat(page)
    session = await say(page, title)
    await ended(page)
    return session


async def choose(page: Page, title: str, action: str) -> None:
    await page.get_by_role("main").get_by_role("button", name=f"Actions for {title}").click()
    await page.get_by_role("menuitem", name=action).click()


async def test_a_chat_is_found_by_its_title_and_by_what_was_said(suite: Suite, page: Page, axe: Axe) -> None:
    title = fresh("Weather")
    suite.model.script(Reply(text="The anemometer measures the wind on the roof."))
    session = await begin(page, title)
    await page.get_by_role("button", name="Search all chats").click()
    field = page.get_by_role("searchbox", name="Search titles and texts")

    await field.fill("ANEMOMETER roof")
    hit = chats(page).get_by_role("link", name="anemometer").first
    await expect(hit).to_be_visible()
    await expect(hit.locator("mark").first).to_have_text("anemometer")
    await axe(page)
    await hit.click()
    await page.wait_for_url(f"**/chat/{session}?q=ANEMOMETER+roof#m-*")

    await field.fill(title)
    await expect(chats(page).get_by_role("listitem")).to_have_count(1)
    await field.fill("no chat has ever said this")
    await expect(page.get_by_text("No chat has these words")).to_be_visible()
    await field.press("Escape")
    await expect(chats(page).get_by_text(title)).to_be_visible()


async def test_a_hit_in_the_chat_that_is_open_is_shown(suite: Suite, page: Page) -> None:
    title = fresh("Far away")
    suite.model.script(Reply(text="The hygrometer is in the cellar."), Reply(text="\n\n".join(["a line"] * 200)))
    await begin(page, title)
    await say(page, "and now something long")
    await expect(answers(page)).to_have_count(2)
    await ended(page)
    await page.get_by_role("button", name="Search all chats").click()
    await page.get_by_role("searchbox", name="Search titles and texts").fill("hygrometer cellar")

    for _ in range(2):
        await chats(page).get_by_role("link", name="hygrometer").last.click()
        await expect(answers(page).first).to_be_in_viewport()
        await page.get_by_role("button", name="To the end").click()
        await expect(answers(page).first).not_to_be_in_viewport()


async def test_a_chat_whose_last_answer_failed_is_marked_until_it_goes_on(suite: Suite, page: Page, axe: Axe) -> None:
    title = fresh("Marked")
    suite.model.script(Reply(status=401, when="Marked", times=1), Reply(text="Now it works."))
    await open_chat(page)
    await say(page, title)
    await ended(page, "Failed")
    row = chats(page).get_by_role("listitem").filter(has_text=title)
    mark = row.get_by_role("img", name="The last answer failed")

    await expect(mark).to_be_visible()
    await page.reload()
    await expect(mark).to_be_visible()
    await axe(page)
    await say(page, "again")
    await ended(page)

    await expect(row).to_be_visible()
    await expect(mark).to_have_count(0)


async def test_words_are_found_in_an_open_chat(suite: Suite, page: Page) -> None:
    suite.model.script(Reply(text="The first has a barometer."), Reply(text="The second has none."))
    await begin(page, fresh("Instruments"))
    await say(page, "and the other one?")
    await expect(answers(page)).to_have_count(2)
    await ended(page)

    await page.get_by_role("main").get_by_role("button", name="Search in this chat").click()
    await page.get_by_role("searchbox", name="Search in this chat").fill("barometer")
    await page.get_by_role("search").get_by_role("button", name="barometer").click()

    await expect(answers(page).first).to_have_class("turn answer found")


async def test_a_name_is_kept_and_a_stale_one_is_shown_beside_the_stored_one(
    page: Page, talk: Talk, recorder: Recorder
) -> None:
    recorder.forgive("status of 409")
    title = fresh("Name me")
    session = await begin(page, title)
    await choose(page, title, "Rename")
    named = fresh("Named")
    await page.get_by_role("textbox", name="Name").fill(named)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name=named)).to_be_visible()
    await say(page, "a later message does not rename it")
    await ended(page)
    await expect(page.get_by_role("heading", name=named)).to_be_visible()

    await choose(page, named, "Rename")
    view = await talk.json("GET", f"/api/sessions/{session}")
    theirs = fresh("Theirs")
    await talk.json("PATCH", f"/api/sessions/{session}", {"revision": view["revision"], "title": theirs})
    mine = fresh("Mine")
    await page.get_by_role("textbox", name="Name").fill(mine)
    await page.get_by_role("button", name="Save").click()

    await expect(page.get_by_role("alert").get_by_text(theirs)).to_be_visible()
    await expect(page.get_by_role("textbox", name="Your name for it")).to_have_value(mine)
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("heading", name=mine)).to_be_visible()


async def test_an_archived_chat_is_read_and_restored(page: Page) -> None:
    title = fresh("Put away")
    await begin(page, title)

    await choose(page, title, "Archive")
    await expect(chats(page).get_by_text(title)).to_have_count(0)
    await expect(composer(page)).to_have_attribute("placeholder", "This chat is archived. Restore it to go on.")
    await page.get_by_role("button", name="Archived chats").click()
    await expect(chats(page).get_by_text(title)).to_be_visible()
    await page.get_by_role("button", name="Restore", exact=True).click()
    await expect(chats(page).get_by_text(title)).to_have_count(0)
    await page.get_by_role("button", name="Active chats").click()

    await expect(chats(page).get_by_text(title)).to_be_visible()


async def test_a_deleted_chat_comes_back_until_the_time_to_undo_is_over(
    page: Page, talk: Talk, recorder: Recorder
) -> None:
    recorder.forgive("status of 404")
    title = fresh("Throw away")
    session = await begin(page, title)

    await choose(page, title, "Delete")
    await expect(chats(page).get_by_text(title)).to_have_count(0)
    await page.wait_for_url("**/chat/new")
    # Told of again meanwhile, it stays away.
    view = await talk.json("GET", f"/api/sessions/{session}")
    await talk.json("PATCH", f"/api/sessions/{session}", {"revision": view["revision"], "title": f"{title} again"})
    other = fresh("Another")
    await talk.chat(other)
    await expect(chats(page).get_by_text(other)).to_be_visible()
    await expect(chats(page).get_by_text(title)).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(chats(page).get_by_text(title)).to_be_visible()
    await page.goto(f"/chat/{session}")
    await choose(page, f"{title} again", "Delete")
    # Leaving the page is no way to keep it.
    await page.goto("about:blank")

    async def is_gone() -> bool:
        return (await talk.http.get(f"/api/sessions/{session}")).status_code == 404

    await until(is_gone)


async def test_a_chat_is_saved_as_markdown_and_json(suite: Suite, page: Page) -> None:
    title = fresh("Export")
    suite.model.script(Reply(text="exported **answer**"))
    session = await begin(page, title)

    async with page.expect_download() as markdown:
        await choose(page, title, "Export as Markdown")
    text = (await (await markdown.value).path()).read_text(encoding="utf-8")
    async with page.expect_download() as exported:
        await choose(page, title, "Export as JSON")
    data = json.loads((await (await exported.value).path()).read_text(encoding="utf-8"))

    assert title in text
    assert "exported **answer**" in text
    assert (await markdown.value).suggested_filename.endswith(".md")
    assert data["session"]["id"] == session
    assert [message["role"] for message in data["messages"]] == ["user", "assistant"]


async def test_a_chat_that_does_not_exist_says_so(page: Page, recorder: Recorder) -> None:
    recorder.forgive("status of 404")

    await page.goto("/chat/no-such-chat")

    await expect(page.get_by_role("heading", name="There is no such chat")).to_be_visible()
    await page.get_by_role("main").get_by_role("link", name="Open the chats").click()
    await expect(composer(page)).to_be_visible()
