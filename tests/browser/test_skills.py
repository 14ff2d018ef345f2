"""Skills of an agent: written with their texts, saved by two, turned off, deleted, imported from a folder, exported."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from tests.browser.browser import Recorder
from tests.browser.conftest import Axe
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

AGENT: Final = "community-steward"
SKILLS: Final = f"/agents/{AGENT}/skills"
TOUCHED: Final = ":is(.main .btn, .main .input, .segments > *, .skills .check, .skill, .pair-head, dialog .btn):visible"
LEAST_TARGET: Final = 43.5


async def stored(talk: Talk) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await talk.json("GET", f"/api{SKILLS}"))["items"]
    return items


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def as_it_was(talk: Talk) -> AsyncIterator[None]:
    """Take away what a test leaves behind."""
    before = {skill["id"] for skill in await stored(talk)}
    yield
    for skill in await stored(talk):
        if skill["id"] not in before:
            await talk.json("DELETE", f"/api{SKILLS}/{skill['id']}")


async def make(talk: Talk, name: str = "greet-people", **fields: Any) -> dict[str, Any]:
    body = {"name": name, "description": "How people are greeted.", "instructions": "# Steps\n\n1. Smile.", **fields}
    made: dict[str, Any] = await talk.json("POST", f"/api{SKILLS}", body)
    return made


def field(page: Page, label: str) -> Locator:
    return page.get_by_label(label, exact=True)


def save(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


async def saved_all(page: Page) -> None:
    """Wait until nothing is left to save."""
    await expect(page.get_by_role("button", name="Discard")).to_have_count(0)


async def test_a_skill_is_written_with_its_texts_and_edited_with_its_difference_in_sight(
    page: Page, talk: Talk, axe: Axe
) -> None:
    await page.goto(f"/agents/{AGENT}")
    await page.get_by_role("navigation", name="Parts of").get_by_role("link", name="Skills").click()
    await page.get_by_role("link", name="New skill").click()
    await expect(page.get_by_text("Missing: name, description, instructions")).to_be_visible()
    await field(page, "Name").fill("Greet people")
    await expect(page.get_by_role("alert")).to_contain_text("Small letters and digits")
    await field(page, "Name").fill("greet-people")
    await field(page, "Description").fill("How people are greeted.")
    await field(page, "Instructions").fill("# Steps\n\n1. Smile.")
    await page.get_by_role("button", name="Add a text").click()
    await field(page, "Path").fill("words/hello.md")
    await field(page, "Text").fill("Hello.")
    await axe(page)
    await page.get_by_role("button", name="Create").click()
    await expect(page).not_to_have_url(re.compile("/new$"))

    await field(page, "Instructions").fill("# Steps\n\n1. Smile.\n2. Ask.")
    await page.get_by_role("button", name="words/hello.md").first.click()
    await field(page, "Text").fill("Hello.\nGood day.")
    unsaved = page.get_by_role("complementary", name="Unsaved changes")
    await expect(unsaved.locator("ins")).to_contain_text(["+ 2. Ask.", "+ Good day."])
    await expect(unsaved).to_contain_text("references/words/hello.md, line 1")
    await axe(page)
    await page.keyboard.press("Control+Enter")
    await saved_all(page)

    [skill] = [each for each in await stored(talk) if each["name"] == "greet-people"]
    assert skill["instructions"] == "# Steps\n\n1. Smile.\n2. Ask."
    assert skill["references"] == {"words/hello.md": "Hello.\nGood day."}


async def test_who_saves_second_sees_both_and_loses_nothing(page: Page, talk: Talk, recorder: Recorder) -> None:
    recorder.forgive("status of 409", "ERR_FAILED")
    # Deaf, so that the page learns of the other save only from the refusal of its own.
    await page.route(re.compile("/api/events"), lambda route: route.abort())
    skill = await make(talk)
    await page.goto(f"{SKILLS}/{skill['id']}")
    await field(page, "Description").fill("Mine.")
    await field(page, "Licence").fill("MIT")

    path = f"/api{SKILLS}/{skill['id']}"
    await talk.json("PATCH", path, {"revision": 0, "description": "Theirs.", "instructions": "Wave."})
    await save(page).click()
    dispute = page.get_by_role("alert").filter(has_text="Both are here.")
    await expect(dispute).to_contain_text("Theirs.")
    await dispute.get_by_role("button", name="Keep mine").click()
    await save(page).click()
    await saved_all(page)

    [after] = [each for each in await stored(talk) if each["id"] == skill["id"]]
    assert (after["description"], after["instructions"], after["license"]) == ("Mine.", "Wave.", "MIT")


async def test_a_name_that_is_taken_is_said_beside_it_and_a_skill_is_turned_off_and_deleted_with_a_way_back(
    page: Page, talk: Talk, recorder: Recorder
) -> None:
    recorder.forgive("status of 409")
    await make(talk)
    second = await make(talk, "part-well")
    await page.goto(f"{SKILLS}/{second['id']}")
    await field(page, "Name").fill("greet-people")
    await save(page).click()
    await expect(field(page, "Name")).to_have_attribute("aria-invalid", "true")
    await expect(page.get_by_text("Somebody saved this skill meanwhile")).to_have_count(0)
    await page.get_by_role("button", name="Discard").click()

    await page.get_by_role("link", name="All skills of").click()
    await page.get_by_role("switch", name="“greet-people” is in use").uncheck()
    await expect(page.get_by_role("switch", name="“greet-people” is in use")).not_to_be_checked()
    await page.get_by_role("link", name="part-well").click()
    await page.get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Undo").click()

    await expect(page.get_by_role("link", name="part-well")).to_be_visible()
    mine = [
        (each["name"], each["enabled"]) for each in await stored(talk) if each["revision"] or each["id"] == second["id"]
    ]
    assert ("greet-people", False) in mine
    assert ("part-well", True) in mine


async def test_a_folder_is_shown_before_it_is_stored_and_goes_out_as_it_came(
    page: Page, talk: Talk, tmp_path: Path, axe: Axe
) -> None:
    stays = await make(talk, enabled=False)
    for name, words in (("greet-people", "Wave."), ("thank-people", "Thank."), ("Bad name", "x")):
        (tmp_path / name / "references").mkdir(parents=True)
        front = f"---\nname: {name}\ndescription: >-\n  How it is\n  done.\nmodel: big\n---\n\n{words}\n"
        (tmp_path / name / "SKILL.md").write_text(front)
        (tmp_path / name / "references" / "a.md").write_text("An “example”.\n")
    await page.goto(SKILLS)
    await page.get_by_role("button", name="Import").click()

    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Choose a folder").click()
    await (await choosing.value).set_files(tmp_path)
    found = page.get_by_role("list", name="What was found").get_by_role("listitem")
    await expect(found.filter(has_text="greet-people")).to_contain_text(
        "Changes description, instructions, references."
    )
    await expect(found.filter(has_text="thank-people")).to_contain_text("new")
    await expect(found.filter(has_text="Bad name")).to_contain_text("name: Small letters and digits")
    await expect(found.first).to_contain_text("Left out: model of the front matter")
    await axe(page)
    await page.get_by_role("button", name="Import 2 skills").click()
    await expect(page.get_by_role("link", name="thank-people")).to_be_visible()
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export all").click()
    archive = await (await downloading.value).path()

    [after] = [each for each in await stored(talk) if each["id"] == stays["id"]]
    assert (after["description"], after["instructions"], after["enabled"]) == ("How it is done.", "Wave.", False)
    with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as packed:
        assert packed.testzip() is None
        assert packed.read("thank-people/references/a.md").decode() == "An “example”.\n"
        assert packed.read("thank-people/SKILL.md").decode().endswith("---\n\nThank.\n")


async def test_skills_fit_on_a_phone_and_a_finger(phone: Page, talk: Talk, axe: Axe) -> None:
    skill = await make(talk, description="A long description " * 20, references={"a.md": "A"})
    small = []
    for path in (SKILLS, f"{SKILLS}/{skill['id']}", f"{SKILLS}/new", "/agents/company"):
        await phone.goto(path)
        await expect(phone.locator(".skeletons")).to_have_count(0)
        await expect(phone.locator("main .bar h1")).to_be_visible()
        await axe(phone)
        assert await phone.evaluate("document.querySelector('main .scroll').scrollWidth <= innerWidth")
        for target in await phone.locator(TOUCHED).all():
            box = await target.bounding_box()
            if box is not None and box["height"] < LEAST_TARGET:
                small.append((path, await target.inner_text(), box["height"]))

    assert small == []
