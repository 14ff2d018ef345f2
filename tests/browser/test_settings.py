"""Settings: bounds, two who save, workspaces, the key, the page itself, health, a model connected in the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from popagent_testing.model_server import ModelServer
from tests.browser.browser import Recorder
from tests.browser.chats import answers
from tests.browser.conftest import Axe, NewPage
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

RUNTIME = "/api/settings/agent-runtime"
SECTIONS = ("models", "runtime", "workspaces", "hooks", "key", "page", "health")
TOUCHED = ".settings :is(.btn, .input, .segments > *, .candidates > *, select):visible"
LEAST_TARGET = 43.5
MODEL_KEY = "sk-of-a-person-7f3a"


@pytest_asyncio.fixture(loop_scope="session")
async def defaults(talk: Talk) -> AsyncIterator[None]:
    """Put the settings that these tests change back for others."""
    yield
    await talk.json("PATCH", RUNTIME, {"supervisorMaxSteps": 32, "concurrentToolCalls": 4})


def save(page: Page) -> Locator:
    return page.get_by_role("button", name="Save", exact=True)


async def saved_all(page: Page) -> None:
    """Wait until nothing is left to save."""
    await expect(page.get_by_role("button", name="Discard")).to_have_count(0)


def steps(page: Page) -> Locator:
    return page.get_by_label("Steps a turn")


@pytest.mark.usefixtures("defaults")
async def test_a_setting_is_held_to_its_bounds_saved_and_led_back_to_its_default(page: Page, talk: Talk) -> None:
    await page.goto("/settings/runtime")

    await steps(page).fill("500")
    await expect(page.get_by_role("alert")).to_contain_text("500 is too high. It goes from 1 to 128.")
    await expect(save(page)).to_be_disabled()
    await steps(page).fill("64")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    saved = await talk.json("GET", RUNTIME)
    await page.get_by_role("button", name="Back to 32, the default").click()
    await save(page).click()
    await saved_all(page)

    assert saved["supervisorMaxSteps"] == 64
    assert (await talk.json("GET", RUNTIME))["supervisorMaxSteps"] == 32


@pytest.mark.usefixtures("defaults")
async def test_who_saves_second_sees_both_and_loses_nothing(page: Page, talk: Talk, recorder: Recorder) -> None:
    recorder.forgive("status of 409", "ERR_FAILED")
    # Deaf, so that the page learns of the other save only from the refusal of its own.
    await page.route(re.compile("/api/events"), lambda route: route.abort())
    await page.goto("/settings/runtime")
    await steps(page).fill("64")
    await page.get_by_label("Tool calls at the same time").fill("8")

    await talk.json("PATCH", RUNTIME, {"supervisorMaxSteps": 16})
    await save(page).click()
    dispute = page.get_by_role("alert").filter(has_text="Both are here.")
    await expect(dispute).to_contain_text("16")
    await expect(dispute).to_contain_text("64")
    await expect(save(page)).to_be_disabled()
    await dispute.get_by_role("button", name="Keep mine").click()
    await save(page).click()
    await saved_all(page)

    stored = await talk.json("GET", RUNTIME)
    assert (stored["supervisorMaxSteps"], stored["concurrentToolCalls"]) == (64, 8)


async def test_what_was_typed_outlives_a_look_at_another_screen(page: Page) -> None:
    await page.goto("/settings/runtime")
    await steps(page).fill("77")

    await page.get_by_role("navigation", name="Settings").get_by_role("link", name="Health").click()
    await expect(page.get_by_role("table", name="Services and their checks")).to_contain_text("docs-indexer")
    await page.get_by_role("navigation", name="Settings").get_by_role("link", name="not saved").click()

    await expect(steps(page)).to_have_value("77")
    await page.get_by_role("button", name="Discard").click()
    await expect(steps(page)).to_have_value("32")


async def test_a_folder_is_found_registered_and_a_missing_one_refused_beside_its_field(
    suite: Suite, page: Page, recorder: Recorder
) -> None:
    recorder.forgive("status of 422")
    (suite.workspaces / "rain-gauge").mkdir(exist_ok=True)
    await page.goto("/settings/workspaces")
    await expect(page.get_by_text(str(suite.workspaces), exact=True)).to_be_visible()
    folder = page.get_by_label("Folder", exact=True)

    await folder.fill("not-there")
    await page.get_by_role("button", name="Register").click()
    await expect(folder).to_have_attribute("aria-invalid", "true")
    await page.get_by_role("button", name="rain-gauge").click()
    await page.get_by_label("Name", exact=True).fill("Rain gauge")
    await page.get_by_role("button", name="Register").click()

    await expect(page.get_by_role("list", name="Workspaces")).to_contain_text("Rain gauge")
    await expect(page.get_by_role("button", name="rain-gauge")).to_have_count(0)


async def test_a_wrong_key_does_not_replace_the_kept_one_and_a_forgotten_one_is_asked_for(
    page: Page, recorder: Recorder
) -> None:
    recorder.forgive("status of 401")
    await page.goto("/settings/key")
    await expect(page.get_by_text("Valid")).to_be_visible()

    await page.get_by_label("Key", exact=True).fill("not-the-key")
    await page.get_by_role("button", name="Try and keep it").click()
    await expect(page.get_by_role("alert")).to_contain_text("This key is not valid.")
    await page.get_by_role("button", name="Forget it").click()
    await page.get_by_role("dialog").get_by_role("button", name="Forget it").click()

    await expect(page.get_by_role("button", name="Go in")).to_be_visible()


async def test_the_page_turns_dark_and_stops_listening_to_letters(page: Page) -> None:
    await page.goto("/settings/page")

    await page.get_by_text("Dark", exact=True).click()
    await page.get_by_role("checkbox").uncheck()
    await page.get_by_role("heading", name="Page").click()
    await page.keyboard.press("g")
    await page.keyboard.press("o")

    assert await page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    await expect(page).to_have_url(re.compile("/settings/page"))


async def test_a_service_that_does_not_answer_is_told_with_what_still_works_and_what_to_do(
    suite: Suite, page: Page
) -> None:
    await page.goto("/chat")
    suite.pause("scheduler")
    try:
        banner = page.get_by_role("alert").filter(has_text="scheduler")
        await expect(banner).to_contain_text("Chats and traces work.", timeout=20_000)
        await banner.get_by_role("button", name="What to do").click()
        await expect(banner).to_contain_text("It is started again by itself")
        await banner.get_by_role("link", name="Health").click()
        await expect(page.get_by_role("region", name="scheduler")).to_contain_text("What to do")
    finally:
        suite.resume("scheduler")

    await expect(page.get_by_role("heading", name="All is well")).to_be_visible(timeout=20_000)


async def test_a_model_that_the_environment_names_is_told_and_not_offered_for_change(page: Page) -> None:
    await page.goto("/settings/models")

    await expect(page.get_by_role("region", name="What answers now")).to_contain_text("scripted-model")
    await expect(page.get_by_role("region", name="What answers now")).to_contain_text("POPAGENT_MODEL_URL")
    await expect(page.get_by_role("button", name="Test")).to_have_count(0)


@pytest.mark.full
async def test_every_section_is_accessible_and_fits_a_finger(phone: Page, page: Page, axe: Axe) -> None:
    small = []
    for section in SECTIONS:
        for each in (page, phone):
            await each.goto(f"/settings/{section}")
            await expect(each.get_by_role("main").get_by_role("heading", level=1)).to_be_visible()
            await expect(each.locator(".skeletons")).to_have_count(0)
            await axe(each)
        for target in await phone.locator(TOUCHED).all():
            box = await target.bounding_box()
            if box is not None and box["height"] < LEAST_TARGET:
                small.append((section, await target.inner_text(), box["height"]))

    assert small == []


async def test_the_first_minutes_say_what_answers_and_ask_the_first_question(suite: Suite, page: Page) -> None:
    await page.goto("/chat/new")

    await expect(page.get_by_text("scripted-model answers.")).to_be_visible()
    await expect(page.get_by_text("the folder default")).to_be_visible()
    await page.get_by_role("button", name="What does this project do? Read the README.").click()

    await expect(answers(page)).to_have_count(1)


@pytest.mark.full
@pytest.mark.timeout(300)
async def test_a_model_is_connected_in_the_page_and_answers_the_next_question(
    tmp_path: Path, new_page: NewPage, axe: Axe
) -> None:
    nothing = {"POPAGENT_MODEL_URL": "", "POPAGENT_CACHE": str(tmp_path / "empty")}
    with ModelServer(key=MODEL_KEY) as model, Suite(tmp_path, env=nothing) as bare:
        page = await new_page(base_url=bare.base_url)
        await expect(page.get_by_text("None answers yet.")).to_be_visible()
        await axe(page)
        await page.get_by_role("main").get_by_role("link", name="Connect a model").first.click()

        await page.get_by_label("Address").fill(model.url)
        await page.get_by_role("button", name="Test").click()
        await expect(page.get_by_text("wants a key")).to_be_visible()
        await page.get_by_label("Key", exact=True).fill(MODEL_KEY)
        await page.get_by_role("button", name="Test").click()
        await expect(page.get_by_text("answers, after")).to_be_visible()
        await axe(page)
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("region", name="What answers now")).to_contain_text("kept, ends in 7f3a")
        await page.goto("/chat/new")
        await page.get_by_role("button", name="What does this project do? Read the README.").click()
        await expect(answers(page)).to_contain_text("What does this project do? Read the README.")

        await page.goto("/settings/models")
        await page.get_by_role("button", name="Disconnect").click()
        await page.get_by_role("dialog").get_by_role("button", name="Disconnect").click()
        await expect(page.get_by_role("heading", name="No model")).to_be_visible()
        # The server goes before the page does.
        await page.goto("about:blank")
