from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest

from popagent_db.pool import Pool
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, connect_as, shared_suite_nats

from .running import Docs, Known, chat, start_docs_indexer

__all__ = ["connect_as", "shared_suite_nats"]

E = TypeVar("E", bound=Exception)


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


@pytest.fixture(scope="module")
def dsn(service_database: Callable[[str], str]) -> str:
    """A migrated database; each test has a workspace of its own."""
    return service_database("docs-indexer")


@pytest.fixture
async def known(connect_as: ConnectAs) -> AsyncIterator[Known]:
    """The workspaces that chat, played by the test, knows."""
    played = Known()
    bus = await connect_as("chat")
    await bus.serve(chat, played)
    yield played
    await bus.stop_serving()


@pytest.fixture
async def pool(dsn: str, suite_nats: NatsServer) -> AsyncIterator[Pool]:
    """The pool of a running docs-indexer."""
    async with AsyncExitStack() as closing:
        yield await start_docs_indexer(dsn, suite_nats.url, closing)


@pytest.fixture
async def docs(connect_as: ConnectAs, pool: Pool, known: Known) -> Docs:
    """What a person does in a new workspace."""
    return Docs(await connect_as("gateway"), pool, known)


@pytest.fixture
def refusal() -> Callable[[type[E], Awaitable[Any]], Awaitable[E]]:
    """Return `await refusal(kind, work)`: why it is refused."""

    async def refused(kind: type[E], work: Awaitable[Any]) -> E:
        with pytest.raises(kind) as caught:
            await work
        return caught.value

    return refused
