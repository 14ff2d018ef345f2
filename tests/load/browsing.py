"""One tab of the system's Chromium, with what its own clocks and observers say of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from playwright.async_api import Browser, CDPSession, Page, Request, async_playwright

from tests.browser import browser as chromium
from tests.browser.chats import composer
from tests.suite import Suite, SuiteError

TIMEOUT_MS: Final = 60_000
# Runs before the page's own scripts. A time is `performance.now()`, so 0 is the start of the navigation. Something
# counts as painted in the task after the frame that shows it.
PROBE: Final = """
(() => {
  const seen = window.seen = { tasks: [], shifts: [], inputs: [], slowInputs: [], usable: null, clicked: null };
  const watch = (type, take, more) =>
    new PerformanceObserver(list => list.getEntries().forEach(take)).observe({ type, buffered: true, ...more });
  watch("longtask", entry => seen.tasks.push(entry.duration));
  watch("layout-shift", entry => entry.hadRecentInput || seen.shifts.push(entry.value));
  watch("event", entry => entry.name === "keydown" && seen.slowInputs.push(entry.duration), { durationThreshold: 16 });
  const afterPaint = then => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(null);
  });
  window.painted = find => new Promise(done => {
    const look = () => {
      const found = find();
      if (found) { changes.disconnect(); afterPaint(done); }
    };
    const changes = new MutationObserver(look);
    changes.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
  });
  addEventListener("click", event => { seen.clicked = event.timeStamp; }, true);
  addEventListener("keydown", event => afterPaint(now => seen.inputs.push(now - event.timeStamp)), true);
  painted(() => {
    const field = document.getElementById("composer");
    field?.focus();
    return field && document.activeElement === field;
  }).then(now => { seen.usable = now; });
})();
"""

STAMP: Final = "document.querySelector('.turns:last-child .turn:last-child footer.stamp b')"


@dataclass
class Tab:
    """A page with its debugging connection."""

    page: Page
    cdp: CDPSession
    requests: list[Request]

    async def seen(self, name: str) -> Any:
        """Return what the probe noted: durations and moments in ms."""
        return await self.page.evaluate("name => window.seen[name]", name)

    async def forget(self) -> None:
        """Begin to note anew."""
        await self.page.evaluate(
            "() => Object.assign(window.seen, { tasks: [], shifts: [], inputs: [], slowInputs: [] })"
        )

    async def cpu_ms(self) -> float:
        """Return the CPU time of the main thread's tasks so far, which a busy machine hardly changes."""
        metrics = (await self.cdp.send("Performance.getMetrics"))["metrics"]
        return 1_000 * float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    async def settled(self) -> None:
        """Wait until what renders answers was fetched too, the page has nothing to do, and two frames were painted."""
        await self.until("() => performance.getEntriesByType('resource').some(each => /Markdown-/.test(each.name))")
        await self.page.evaluate("() => new Promise(done => requestIdleCallback(done, { timeout: 5000 }))")
        await self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    async def until(self, condition: str, arg: Any = None, timeout_ms: float = TIMEOUT_MS) -> None:
        """Wait for a condition of the page, looked at so seldom that it does not show in the figures."""
        await self.page.wait_for_function(condition, arg=arg, timeout=timeout_ms, polling=200)

    async def ended(self, timeout_ms: float = TIMEOUT_MS) -> None:
        """Wait for the stamp of the last answer.

        Raises:
            SuiteError: It was not done.
        """
        await self.until(f"() => {STAMP}", None, timeout_ms)
        if (words := await self.page.evaluate(f"() => {STAMP}.textContent")) != "Done":
            raise SuiteError(f"the answer ended so: {words}")

    async def memory(self) -> Memory:
        """Return what is reachable now."""
        for _ in range(2):  # what the first collection finalises, the second one frees
            await self.cdp.send("HeapProfiler.collectGarbage")
        heap = await self.cdp.send("Runtime.getHeapUsage")
        counters = await self.cdp.send("Memory.getDOMCounters")
        return Memory(heap["usedSize"] / 2**20, counters["nodes"], counters["jsEventListeners"])


@dataclass(frozen=True)
class Memory:
    """Of one tab, after collecting garbage."""

    heap_mib: float
    nodes: int
    listeners: int


@asynccontextmanager
async def chrome() -> AsyncIterator[Browser]:
    """Start the system's Chromium.

    Raises:
        SuiteError: The page was not built.
    """
    if not chromium.BUILT.exists():
        raise SuiteError("the page was not built: run `make ui`")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium.executable(), args=chromium.flags())
        yield browser
        await browser.close()


@asynccontextmanager
async def open_tab(browser: Browser, suite: Suite, path: str = "/chat/new", **options: Any) -> AsyncIterator[Tab]:
    """Open a page as on a device that has never seen it but knows the key; returns once one can write."""
    stored = chromium.storage(suite.base_url, suite.key)
    context = await browser.new_context(
        **{**chromium.DESKTOP, **options}, base_url=suite.base_url, storage_state=stored
    )
    context.set_default_timeout(TIMEOUT_MS)
    try:
        await context.add_init_script(PROBE)
        page = await context.new_page()
        cdp = await context.new_cdp_session(page)
        await cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
        await cdp.send("HeapProfiler.enable")
        requests: list[Request] = []
        page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 (it marks what it is given)
        await page.goto(path)
        await composer(page).wait_for()
        await page.wait_for_function("() => window.seen.usable !== null")
        yield Tab(page, cdp, requests)
    finally:
        await context.close()
