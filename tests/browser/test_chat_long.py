"""Chats that are longer than a page of messages."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from popagent_kit.ids import new_id
from tests.browser.chats import answers, open_chat, stamp
from tests.browser.long_chats import CLIMB, seed
from tests.suite import Suite

pytestmark = pytest.mark.timeout(120)


async def test_what_is_read_stays_where_it_is_while_older_messages_come_in_front(suite: Suite, page: Page) -> None:
    session = new_id()
    await seed(suite, session, 120)
    await open_chat(page, session)
    await expect(stamp(page, "Done")).to_be_visible()
    await expect(answers(page).last.locator(".prose h2").first).to_be_attached()

    climbed = await page.evaluate(CLIMB)

    assert climbed["messages"] == 120
    assert climbed["worst"] <= 2, climbed


async def test_who_scrolls_up_at_once_is_not_taken_back_to_the_end(suite: Suite, page: Page) -> None:
    session = new_id()
    await seed(suite, session, 120)
    await open_chat(page, session)

    for _ in range(3):  # while the rest of the end is drawn above what is seen
        await page.reload()
        await answers(page).last.locator("footer.stamp").wait_for()
        climbed = await page.evaluate(CLIMB)
        assert climbed["worst"] <= 2, climbed
