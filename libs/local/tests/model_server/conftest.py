"""The door over a listener that the test plays: a real HTTP server on loopback on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp

from libs.local.tests.model_server.asking import KEY
from libs.local.tests.model_server.listener import Letters, Listener, Readable
from popagent_local.model_server.app import Models, build_app
from popagent_local.model_server.upstream import Upstream


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_config=None, timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.005)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def models() -> Models:
    return Models(KEY, "tiny", 8_192, Readable(), embedder=Letters())


@pytest.fixture
async def client(listener: Listener, models: Models) -> AsyncIterator[httpx2.AsyncClient]:
    inner = Starlette(routes=[Route("/v1/chat/completions", listener.answer, methods=["POST"])])
    headers = {"Authorization": f"Bearer {KEY}"}
    async with serving(inner) as address, serving(build_app(models)) as door:
        models.upstream = Upstream(address, "inner-key")
        async with httpx2.AsyncClient(base_url=door, headers=headers, timeout=10) as outer:
            yield outer
        await models.upstream.close()
