"""The system's Chromium for tests: where it is, how it is started, and what a page must never do while a test looks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import ConsoleMessage, Error, Page, Request, StorageState

ROOT: Final = Path(__file__).parents[2]
UI: Final = ROOT / "services/gateway/ui"
BUILT: Final = ROOT / "services/gateway/popagent_gateway/static/index.html"
SHOTS: Final = ROOT / ".popagent/browser"
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The same engine without the windows that nobody sees: a page takes it a third of the processor time.
WINDOWLESS: Final = ("chromium-headless-shell", "chrome-headless-shell")
# Nothing that a browser does by itself: no update, no sync, no look at another host, whatever a page asks for.
FLAGS: Final = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-proxy-server"),
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)
DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1440, "height": 900}}
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
SERIOUS: Final = ("serious", "critical")


_AXE: Final = """([within, rules]) => axe.run(within, {
  resultTypes: ['violations'], ...(rules ? {runOnly: {type: 'rule', values: rules}} : {}),
}).then(result => result.violations)"""


def missing(reason: str) -> None:
    """Skip, saying why; in CI what is missing is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def executable(names: Sequence[str] = NAMES) -> str:
    """Return where the system's Chromium is: the first of `names` that is installed."""
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        missing("no Chromium is installed: the page is not looked at (on Debian or Ubuntu: apt install chromium)")
    assert found is not None
    return found


def flags() -> list[str]:
    """Return how Chromium is started; its sandbox does not work for root."""
    return [*FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]


# Both databases must answer within a second, or popagent is not ready: on a busy machine that is so for a moment, and
# the page says it. The browser logs every such answer.
NOT_READY: Final = r"status of 503 .*/api/health\)$"


@dataclass
class Recorder:
    """Everything that went wrong in the pages of one test; `forgive` names what the test provokes."""

    origins: list[str]
    wrong: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    forgiven: list[re.Pattern[str]] = field(default_factory=lambda: [re.compile(NOT_READY)])

    def forgive(self, *patterns: str) -> None:
        """Let console errors pass that match, earlier ones too; another origin is never forgiven."""
        self.forgiven += [re.compile(pattern) for pattern in patterns]

    def watch(self, page: Page) -> None:
        """Listen to a page and to everything that it opens."""
        page.on("request", self._requested)
        page.on("console", self._said)
        page.on("pageerror", self._failed)

    def _requested(self, request: Request) -> None:
        own = next((origin for origin in self.origins if request.url.startswith(f"{origin}/")), "")
        self.requests.append(f"{request.method} {request.url.removeprefix(own)}")
        if not own and not request.url.startswith(("data:", "blob:", "about:")):
            self.wrong.append(f"request to another origin: {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(f"console error: {message.text} ({message.location.get('url', '')})")

    def _failed(self, error: Error) -> None:
        self.wrong.append(f"uncaught error: {error}")

    def unforgiven(self) -> list[str]:
        """Return what nobody expected."""
        return [
            line
            for line in self.wrong
            if line.startswith("request to another origin") or not any(each.search(line) for each in self.forgiven)
        ]


async def axe(page: Page, *, within: str = "html") -> None:
    """Fail on what axe-core calls serious or critical in the page as it is; contrast is looked at in both themes."""
    await page.evaluate(_axe_source())
    found = await page.evaluate(_AXE, [within, None])
    before = await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    await page.emulate_media(color_scheme="light" if before else "dark", reduced_motion="reduce")
    found += await page.evaluate(_AXE, [within, ["color-contrast"]])
    await page.emulate_media(color_scheme="dark" if before else "light")
    bad = [each for each in found if each["impact"] in SERIOUS]
    told = [
        f"{each['id']} ({each['impact']}): {each['help']}\n  "
        + "\n  ".join(f"{node['target']}: {node['failureSummary']}" for node in each["nodes"][:5])
        for each in bad
    ]
    assert not bad, f"{page.url}\n" + "\n".join(told)


def _axe_source() -> str:
    file = UI / "node_modules/axe-core/axe.min.js"
    if not file.exists():
        missing("axe-core is not installed: `make ui-dev` installs it")
    return file.read_text(encoding="utf-8")


def storage(address: str, key: str) -> StorageState:
    """Return the storage of a browser that knows the key of the gateway at `address`."""
    return {"cookies": [], "origins": [{"origin": address, "localStorage": [{"name": "popagent.key", "value": key}]}]}
