"""Work on the page: `npm run dev` serves it from its sources and passes `/api` on to a running gateway."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from popagent_local.ports import free_port
from tests.browser.browser import UI
from tests.browser.conftest import NewPage
from tests.conformance.official_client import PATH, program
from tests.suite import Suite, answers_ok

pytestmark = [pytest.mark.full, pytest.mark.node, pytest.mark.timeout(120)]


@pytest_asyncio.fixture(loop_scope="session")
async def dev_server(suite: Suite) -> AsyncIterator[str]:
    port = str(free_port())
    command = [program("npm"), "run", "dev", "--", "--port", port, "--strictPort", "--logLevel", "error"]
    env = {**os.environ, "PATH": PATH, "GATEWAY": suite.base_url}
    server = await asyncio.create_subprocess_exec(*command, cwd=UI, env=env, start_new_session=True)
    address = f"http://localhost:{port}"
    while not await asyncio.to_thread(answers_ok, address):
        assert server.returncode is None
        await asyncio.sleep(0.1)
    yield address
    os.killpg(server.pid, signal.SIGTERM)
    await server.wait()


async def test_the_page_from_its_sources_reads_and_writes_through_the_gateway(
    dev_server: str, new_page: NewPage
) -> None:
    page = await new_page(base_url=dev_server)
    await expect(page.get_by_role("navigation", name="Main").first).to_be_visible(timeout=30_000)

    status = await page.evaluate(
        """async () => (await fetch('/api/sessions', {method: 'POST', body: '{"title": "From the sources"}', headers: {
          'content-type': 'application/json', 'x-popagent-key': localStorage.getItem('popagent.key'),
        }})).status"""
    )

    assert status == 201
