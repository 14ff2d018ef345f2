"""What stands around every screen: loading, keys, palette, theme, the key's door, sizes, accessibility."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, expect

from tests.browser.browser import PHONE, Recorder
from tests.browser.conftest import NewPage
from tests.suite import Suite

pytestmark = pytest.mark.timeout(120)

ROUTES = ("/chat", "/observe", "/settings/models", "/no/such/page")
UNAUTHORIZED = r"status of 401"


async def test_the_page_opens_with_five_files_at_most(page: Page, recorder: Recorder) -> None:
    await expect(page.get_by_role("navigation", name="Main").first).to_be_visible()

    files = {request for request in recorder.requests if "/api/" not in request}

    assert "GET /" in files
    assert len(files) <= 5, files
