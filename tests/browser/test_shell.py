"""What stands around every screen: loading, keys, palette, theme, the key's door, sizes, accessibility."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.browser import Recorder
from tests.browser.conftest import Axe, NewPage
from tests.suite import Suite

pytestmark = pytest.mark.timeout(120)

ADDRESSES = (
    *("/chat", "/channels/general", "/channels/settings", "/observe", "/observe/traces/no-such-trace"),
    *("/settings", "/settings/health", "/no/such/page"),
)
WIDTHS = (320, 390, 760, 761, 1180, 1440)
REFUSED = r"status of 40[14]"
PALETTE = "Go to or do"


async def go_in(page: Page, key: str) -> None:
    """Answer the form that asks for the key."""
    await page.get_by_label("Key", exact=True).fill(key)
    await page.get_by_role("button", name="Go in").click()


async def shell_is_there(page: Page) -> None:
    await expect(page.locator("nav[aria-label=Main]:visible").first).to_be_visible()


async def settled(page: Page) -> None:
    """Wait until the screen is there, in the file of its own."""
    await shell_is_there(page)
    await expect(page.locator("main:visible, aside:visible").first).to_be_visible()


async def test_the_page_opens_with_five_files_at_most(page: Page, recorder: Recorder) -> None:
    await shell_is_there(page)

    files = {request for request in recorder.requests if "/api/" not in request}
    # What renders answers is fetched ahead, when nothing else is to be done.
    needed = {file for file in files if "/assets/Markdown-" not in file}

    assert "GET /" in needed
    assert len(needed) <= 5, needed


async def test_a_stranger_is_asked_for_the_key_and_a_wrong_one_is_refused_in_words(
    suite: Suite, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive(REFUSED)
    page = await new_page(signed_in=False, path="/settings")

    await go_in(page, "not-the-key")
    await expect(page.get_by_role("alert")).to_contain_text("This key is not valid.")
    await go_in(page, f"  {suite.key} ")

    await shell_is_there(page)
    assert page.url.startswith(f"{suite.base_url}/settings")
    await page.reload()
    await shell_is_there(page)
    assert not [request for request in recorder.requests if suite.key in request]


async def test_a_key_that_was_changed_is_asked_for_where_the_reader_is(
    suite: Suite, page: Page, recorder: Recorder
) -> None:
    recorder.forgive(REFUSED)
    await page.goto("/settings")
    await settled(page)

    await page.evaluate("localStorage.setItem('popagent.key', 'the key of yesterday')")
    await page.keyboard.press("g")
    await page.keyboard.press("o")
    await expect(page.get_by_role("alert")).to_contain_text("not valid any more")
    await go_in(page, suite.key)

    await shell_is_there(page)
    await expect(page).to_have_url(re.compile("/observe"))


async def test_the_palette_goes_where_one_types(page: Page) -> None:
    await shell_is_there(page)

    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name=PALETTE).fill("obs")
    await page.keyboard.press("Enter")

    await expect(page).to_have_url(re.compile("/observe"))
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_escape_closes_the_palette_and_gives_the_focus_back(page: Page) -> None:
    await shell_is_there(page)
    finder = page.get_by_role("button", name=PALETTE)
    await finder.focus()

    await page.keyboard.press("Enter")
    await expect(page.get_by_role("combobox", name=PALETTE)).to_be_focused()
    await page.keyboard.press("Escape")

    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(finder).to_be_focused()


async def test_a_question_mark_lists_the_keys_and_letters_go_places(page: Page) -> None:
    await page.goto("/settings")
    await settled(page)

    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    await expect(keys).to_contain_text("G then O")
    await page.keyboard.press("Escape")
    await expect(keys).to_have_count(0)
    await page.keyboard.press("g")
    await page.keyboard.press("o")

    await expect(page).to_have_url(re.compile("/observe"))


async def test_an_unknown_address_says_so_and_leads_back(page: Page) -> None:
    await page.goto("/no/such/page")

    await expect(page.get_by_role("heading", name="There is no page here")).to_be_visible()
    await page.get_by_role("link", name="Open the chats").click()

    await expect(page).to_have_url(re.compile("/chat"))


async def test_every_address_can_be_loaded_and_walked_back_to(page: Page, recorder: Recorder) -> None:
    recorder.forgive(REFUSED)

    for address in ADDRESSES:
        await page.goto(address)
        await shell_is_there(page)
    await page.go_back()

    await expect(page).to_have_url(re.compile("/settings/health"))


async def test_a_file_that_an_update_took_away_is_told_as_an_update(page: Page, recorder: Recorder) -> None:
    recorder.forgive(REFUSED, "dynamically imported module")
    await page.goto("/settings")
    await settled(page)

    async def gone(route: Route) -> None:
        await route.continue_(url=f"{route.request.url.rpartition('/')[0]}/of-an-older-version.js")

    await page.route(re.compile(r"/assets/Observe-[^/]*\.js"), gone)
    await page.keyboard.press("g")
    await page.keyboard.press("o")
    await expect(page.get_by_role("heading", name="popagent was updated")).to_be_visible()
    await page.unroute_all()
    await page.get_by_role("button", name="Load again").click()

    await shell_is_there(page)
    await expect(page.get_by_role("heading", name="popagent was updated")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_page_follows_the_system_s_theme_and_a_choice_wins(new_page: NewPage, scheme: str) -> None:
    page = await new_page(path="/settings", color_scheme=scheme)
    await settled(page)
    background = "getComputedStyle(document.body).backgroundColor"

    followed = await page.evaluate(background)
    other = "light" if scheme == "dark" else "dark"
    await page.evaluate("theme => localStorage.setItem('popagent.theme', theme)", other)
    await page.reload()
    await settled(page)
    chosen = await page.evaluate(background)

    dark = {"light": False, "dark": True}
    assert [_is_dark(followed), _is_dark(chosen)] == [dark[scheme], dark[other]]


def _is_dark(colour: str) -> bool:
    channels = [int(channel) for channel in re.findall(r"\d+", colour)[:3]]
    return sum(channels) < 3 * 128


async def test_nothing_is_wider_than_the_window(page: Page, recorder: Recorder) -> None:
    recorder.forgive(REFUSED)
    too_wide = []

    for address in ADDRESSES:
        await page.goto(address)
        await settled(page)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 800})
            needed = await page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                too_wide.append((address, width, needed))

    assert too_wide == []


async def test_every_screen_is_accessible_in_both_themes(page: Page, axe: Axe, recorder: Recorder) -> None:
    recorder.forgive(REFUSED)

    for address in ADDRESSES:
        await page.goto(address)
        await settled(page)
        await axe(page)


async def test_overlays_the_gate_and_the_phone_are_accessible_in_both_themes(
    phone: Page, new_page: NewPage, axe: Axe, recorder: Recorder
) -> None:
    recorder.forgive(REFUSED)
    await settled(phone)
    await axe(phone)
    await phone.keyboard.press("Control+k")
    await expect(phone.get_by_role("combobox", name=PALETTE)).to_be_visible()
    await axe(phone)
    await phone.keyboard.press("Escape")
    await phone.goto("/settings")
    await settled(phone)
    await phone.keyboard.press("?")
    await expect(phone.get_by_role("dialog", name="Keys")).to_be_visible()
    await axe(phone)

    stranger = await new_page(signed_in=False)
    await expect(stranger.get_by_role("button", name="Go in")).to_be_visible()
    await axe(stranger)


async def test_a_phone_has_fingers_width_and_tabs(phone: Page) -> None:
    await settled(phone)
    tabs = phone.locator("nav.tabs")

    await expect(tabs).to_be_visible()
    boxes = [await link.bounding_box() for link in await tabs.get_by_role("link").all()]
    await tabs.get_by_role("button", name="More").tap()
    await phone.get_by_role("menuitem", name="Settings").tap()

    assert boxes
    assert min(box["height"] for box in boxes if box) >= 44
    await expect(phone).to_have_url(re.compile("/settings"))
