"""Specialists that write to each other: who was woken by whom is seen as it happens, and ever after."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.async_api import Locator, Page, expect

from popagent_testing.model_replies import Reply, call
from tests.browser.chats import ended, open_chat, say
from tests.browser.conftest import Axe
from tests.suite import Suite

pytestmark = pytest.mark.timeout(120)

TOOL: Final = "agentCommunication"
ASKED: Final = "Have them talk about the vane, please."
TASK: Final = "Look at the vane and have it checked."
QUESTION: Final = "Does the vane turn?"
ANSWER: Final = "It turns **freely**."


def script(suite: Suite) -> None:
    """The researcher asks the reviewer, which waits to be released; then the orchestrator asks the implementer."""
    suite.model.script(
        Reply(tool_calls=(call("agent-researcher", prompt=TASK),), when=ASKED),
        Reply(tool_calls=(call(TOOL, operation="send", to="reviewer", message=QUESTION),), when=TASK),
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="reviewer was woken by it"),
        Reply(text=ANSWER, hold=True, after=2, when=QUESTION),
        Reply(text="The vane is well.", when="It turns"),
        Reply(
            tool_calls=(call(TOOL, operation="send", to="implementer", message="Oil it all the same?"),),
            when="The vane is well.",
        ),
        Reply(tool_calls=(call(TOOL, operation="wait"),), when="implementer was woken by it"),
        Reply(text="No need.", when="Oil it all the same?"),
    )
    suite.model.set_default(Reply(text="All is well with it."))


def head(page: Page, name: str) -> Locator:
    return page.locator(".lane-head").filter(has_text=re.compile(f"^..{name}"))


async def test_who_was_woken_has_a_lane_that_says_for_whom_and_reads_the_same_afterwards(
    suite: Suite, page: Page, axe: Axe
) -> None:
    script(suite)
    await open_chat(page)

    await say(page, ASKED)
    await expect(head(page, "Reviewer")).to_contain_text("for Researcher")
    await expect(head(page, "Reviewer")).to_contain_text("Works")
    await expect(head(page, "Researcher")).to_contain_text(f"{TOOL} wait")
    await expect(page.get_by_role("region", name="1 agent").locator("header")).to_contain_text("woken by letters")
    await page.reload()
    await expect(head(page, "Reviewer")).to_contain_text("for Researcher")
    suite.model.release()
    await ended(page)

    await expect(head(page, "Reviewer")).to_contain_text("It turns freely.")
    await expect(head(page, "Implementer")).to_contain_text("for the orchestrator")
    await head(page, "Reviewer").click()
    work = page.get_by_role("group", name="What Reviewer does")
    await expect(work).to_contain_text(QUESTION)
    await expect(work.get_by_role("heading", name="What Researcher was answered")).to_be_visible()
    await axe(page)
    await page.wait_for_function("() => document.querySelector('.lane-work .prose:not(.plain)')")
    after = [await each.inner_text() for each in await page.locator(".lanes").all()]
    await page.reload()
    await ended(page)
    await head(page, "Reviewer").click()
    await page.wait_for_function("() => document.querySelector('.lane-work .prose:not(.plain)')")
    assert [await each.inner_text() for each in await page.locator(".lanes").all()] == after


async def test_a_chat_that_is_stopped_shows_nobody_at_work_who_was_woken(suite: Suite, page: Page) -> None:
    script(suite)
    await open_chat(page)
    await say(page, ASKED)
    await expect(head(page, "Reviewer")).to_contain_text("Works")

    await page.keyboard.press("Shift+Escape")
    await ended(page, "Stopped by you")

    await expect(head(page, "Reviewer")).to_contain_text("Stopped")
    await expect(head(page, "Researcher")).to_contain_text("Stopped")
