"""The page in the system's Chromium over the real suite. See README.md for how a story is written."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, Protocol

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.browser import browser as chromium
from tests.suite import Suite
from tests.talk import Talk

FAILED: pytest.StashKey[bool] = pytest.StashKey()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every test of this folder in the loop that the browser lives in."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure, so that the page's picture is kept."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


Axe = Callable[..., Awaitable[None]]


class NewPage(Protocol):
    """Opens one more page, a device of its own, at `/`."""

    def __call__(
        self, *, signed_in: bool = True, path: str | None = "/", base_url: str | None = None, **options: Any
    ) -> Awaitable[Page]:
        """Return the page once it was loaded; with `path=None` it is blank.

        Args:
            signed_in: Whether the key lies in its storage.
            path: Where it opens.
            base_url: Another gateway's address.
            options: Playwright's, for the context: `**DESKTOP` unless given.
        """
        ...


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Browser]:
    """The one browser of this test process."""
    if not chromium.BUILT.exists():
        chromium.missing("the page was not built: run `make ui`")
    executable = chromium.executable([*chromium.WINDOWLESS, *chromium.NAMES])
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=chromium.flags())
        yield browser
        await browser.close()


@pytest.fixture
def recorder(suite: Suite) -> chromium.Recorder:
    """What goes wrong in this test's pages; it fails the test when it ends."""
    return chromium.Recorder([suite.base_url])


@pytest_asyncio.fixture(loop_scope="session")
async def new_page(
    chrome: Browser, suite: Suite, recorder: chromium.Recorder, request: pytest.FixtureRequest
) -> AsyncIterator[NewPage]:
    """Makes pages that share nothing, as two devices do; `page.context.new_page()` is another tab."""
    contexts: list[BrowserContext] = []

    async def open_page(
        *, signed_in: bool = True, path: str | None = "/", base_url: str | None = None, **options: Any
    ) -> Page:
        address = base_url or suite.base_url
        stored = chromium.storage(address, suite.key) if signed_in else None
        context = await chrome.new_context(**{**chromium.DESKTOP, **options}, base_url=address, storage_state=stored)
        contexts.append(context)
        recorder.origins.append(address)
        context.set_default_timeout(15_000)
        context.on("page", recorder.watch)
        page = await context.new_page()
        if path is not None:
            await page.goto(path)
        return page

    yield open_page
    if request.node.stash.get(FAILED, False):
        await _keep_pictures(request.node.name, contexts)
    for context in contexts:
        await context.close()
    assert recorder.unforgiven() == []


async def _keep_pictures(test: str, contexts: list[BrowserContext]) -> None:
    chromium.SHOTS.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w-]+", "-", test)
    pages = [page for context in contexts for page in context.pages]
    for number, page in enumerate(pages, start=1):
        await page.screenshot(path=chromium.SHOTS / f"{name}-{number}.png")


@pytest_asyncio.fixture(loop_scope="session")
async def page(new_page: NewPage) -> Page:
    """A desktop, 1440×900, signed in and at `/`."""
    return await new_page()


@pytest_asyncio.fixture(loop_scope="session")
async def phone(new_page: NewPage) -> Page:
    """A phone, 390×844 with touch, signed in and at `/`."""
    return await new_page(**chromium.PHONE)


@pytest.fixture
def axe() -> Axe:
    """`await axe(page)` fails on serious and critical violations of accessibility rules."""
    return chromium.axe


@pytest_asyncio.fixture(loop_scope="session")
async def talk(suite: Suite) -> AsyncIterator[Talk]:
    """A client of the shared suite, in the browser's loop: prepares what a page is to show."""
    async with suite.talk() as client:
        yield client
