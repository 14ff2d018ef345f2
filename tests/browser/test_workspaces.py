"""A repository is cloned in the page, and all chats of a workspace are deleted there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Page, expect

from popagent_testing.repositories import Repository, can_be_served, served
from tests.browser.browser import DESKTOP, PHONE, Recorder
from tests.browser.conftest import Axe, NewPage
from tests.suite import Suite
from tests.talk import Talk

DEVICES: Final = {"desktop": DESKTOP, "phone": PHONE}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    if not can_be_served():
        pytest.skip("there is no git daemon")
    Repository.made(tmp_path / "served" / "greenhouse.git").commit("First", {"README.md": "one\n"})
    with served(tmp_path / "served") as address:
        yield address


async def test_a_repository_is_cloned_and_its_workspace_appears(
    suite: Suite, page: Page, recorder: Recorder, address: str
) -> None:
    recorder.forgive("status of 4(22|09)")
    await page.goto("/settings/workspaces")
    url, clone = page.get_by_label("Address"), page.get_by_role("button", name="Clone")

    await url.fill("https://ada:hunter22@example.org/greenhouse.git")
    await clone.click()
    await expect(page.get_by_role("alert")).to_contain_text("Leave it out")
    await url.fill(f"{address}/greenhouse.git")
    await page.get_by_label("Workspace name").fill("The greenhouse")
    await clone.click()

    await expect(page.get_by_role("list", name="Workspaces")).to_contain_text("The greenhouse")
    await expect(page.get_by_text("“greenhouse” is cloned.")).to_be_visible()
    await expect(page.get_by_role("list", name="Clones")).to_have_count(0)
    await expect(url).to_have_value("")
    assert (suite.workspaces / "greenhouse" / "README.md").read_text() == "one\n"

    await url.fill(f"{address}/greenhouse.git")
    await clone.click()
    await expect(page.get_by_role("alert")).to_contain_text("registered already")


async def test_a_clone_that_fails_says_why_also_after_a_reload_and_is_dismissed(
    phone: Page, axe: Axe, address: str
) -> None:
    await phone.goto("/settings/workspaces")
    await phone.get_by_label("Address").fill(f"{address}/missing.git")
    await phone.get_by_role("button", name="Clone").click()

    clones = phone.get_by_role("list", name="Clones")
    await expect(clones).to_contain_text("no repository at this address")
    await phone.reload()
    await expect(clones).to_contain_text("Clone into missing")
    await axe(phone)
    assert await phone.evaluate("document.documentElement.scrollWidth") <= 390
    await clones.get_by_role("button", name="Dismiss").click()

    await expect(clones).to_have_count(0)


@pytest.mark.parametrize("device", DEVICES)
async def test_all_chats_of_a_workspace_go_once_its_name_is_typed(
    suite: Suite, talk: Talk, axe: Axe, device: str, new_page: NewPage
) -> None:
    page = await new_page(**DEVICES[device])
    folder = f"beds-{device}"
    (suite.workspaces / folder).mkdir(exist_ok=True)
    made = await talk.json("POST", "/api/workspaces", {"name": f"Beds {device}", "path": folder})
    for number in range(3):
        await talk.json("POST", "/api/sessions", {"title": f"Seed {number}", "workspaceId": made["id"]})
    other = await talk.json("POST", "/api/sessions", {"title": "Compost"})
    await page.goto("/settings/workspaces")

    await page.get_by_role("button", name=f"Actions for Beds {device}").click()
    await page.get_by_role("menuitem", name="Delete all chats…").click()
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Delete all chats")
    await dialog.get_by_role("textbox").fill("Beds")
    await expect(button).to_be_disabled()
    await axe(page)
    await dialog.get_by_role("textbox").fill(f"Beds {device}")
    await button.click()

    await expect(dialog).to_contain_text("3 chats are deleted.")
    await axe(page)
    await dialog.get_by_role("button", name="Close").click()
    listed = await talk.json("GET", f"/api/sessions?workspaceId={made['id']}")
    assert listed["items"] == []
    assert (await talk.json("GET", f"/api/sessions/{other['id']}"))["title"] == "Compost"
    await page.goto("/chat")
    await expect(page.get_by_text("Compost").first).to_be_visible()
    await expect(page.get_by_text(re.compile("Seed [0-9]"))).to_have_count(0)


async def test_a_workspace_is_renamed_and_forgotten_once_no_chat_works_in_it(
    suite: Suite, talk: Talk, page: Page, recorder: Recorder
) -> None:
    recorder.forgive("status of 409")
    (suite.workspaces / "shed").mkdir(exist_ok=True)
    made = await talk.json("POST", "/api/workspaces", {"name": "Shed", "path": "shed"})
    session = await talk.json("POST", "/api/sessions", {"workspaceId": made["id"]})
    await page.goto("/settings/workspaces")
    listed = page.get_by_role("list", name="Workspaces")

    await page.get_by_role("button", name="Actions for Shed").click()
    await page.get_by_role("menuitem", name="Rename…").click()
    await talk.json("PATCH", f"/api/workspaces/{made['id']}", {"revision": 0, "name": "Elsewhere"})
    await page.get_by_role("dialog").get_by_role("textbox").fill("Tool shed")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("dialog")).to_contain_text("renamed elsewhere to “Elsewhere”")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(listed).to_contain_text("Tool shed")
    await page.get_by_role("button", name="Actions for Tool shed").click()
    await page.get_by_role("menuitem", name="Forget…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    await expect(page.get_by_text("1 session refers to this workspace")).to_be_visible()
    await talk.json("DELETE", f"/api/sessions/{session['id']}")
    await page.get_by_role("button", name="Actions for Tool shed").click()
    await page.get_by_role("menuitem", name="Forget…").click()
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()

    await expect(page.get_by_text("Its folder shed stays.")).to_be_visible()
    await expect(listed).not_to_contain_text("Tool shed")
    assert (suite.workspaces / "shed").is_dir()
