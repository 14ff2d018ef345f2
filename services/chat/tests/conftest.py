from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from popagent_db.pool import Pool, open_pool
from popagent_telemetry import tracing
from popagent_testing.model_server import ModelServer
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, connect_as, shared_suite_nats
from services.chat.tests import owners as owners_of
from services.chat.tests.owners import Owners
from services.chat.tests.running import Chat, Door, start_chat

__all__ = ["connect_as", "shared_suite_nats"]


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    """One server for all; a test that breaks NATS overrides this."""
    return shared_suite_nats


@pytest.fixture(scope="session")
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POPAGENT_MODEL_URL", model_server.url)
    monkeypatch.setenv("POPAGENT_MODEL", "scripted-model")
    yield model_server
    model_server.reset()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace root with the default workspace in it."""
    (tmp_path / "root" / "default").mkdir(parents=True)
    (tmp_path / "root" / "default" / "README.md").write_text("The word of the day is heron.\n")
    return tmp_path / "root"


@pytest.fixture(scope="module")
def dsn(service_database: Callable[[str], str]) -> str:
    """A migrated database of this module."""
    return service_database("chat")


class StartChat(Protocol):
    def __call__(self, **settings: Any) -> Awaitable[Chat]: ...


class ChatOn(Protocol):
    def __call__(self, dsn: str, **settings: Any) -> Awaitable[Chat]: ...


@pytest.fixture
async def chat_on(suite_nats: NatsServer, root: Path, model: ModelServer) -> AsyncIterator[ChatOn]:
    """Return `await chat_on(dsn, **settings)`: an instance on a database; the fixture stops what is left."""
    started: list[Chat] = []

    async def starting(dsn: str, **settings: Any) -> Chat:
        started.append(await start_chat(dsn, suite_nats.url, root, **settings))
        return started[-1]

    yield starting
    for chat in reversed(started):
        await chat.stop()


@pytest.fixture
def start(dsn: str, chat_on: ChatOn) -> StartChat:
    """Return `await start(**settings)`: one more instance on the module's database."""
    return lambda **settings: chat_on(dsn, **settings)


@pytest.fixture
async def chat(start: StartChat) -> Chat:
    return await start()


@pytest.fixture
async def door(connect_as: ConnectAs) -> Door:
    return Door(await connect_as("gateway"))


@pytest.fixture
async def owners(connect_as: ConnectAs) -> AsyncIterator[Owners]:
    """Whom chat asks before it deletes a workspace."""
    runner, scheduler, docs = [await connect_as(name) for name in ("task-runner", "scheduler", "docs-indexer")]
    played = Owners(scheduler, docs)
    await runner.serve(owners_of.task_runner, played)
    await scheduler.serve(owners_of.scheduler, played)
    await docs.serve(owners_of.docs_indexer, played)
    yield played
    for each in (runner, scheduler, docs):
        await each.stop_serving()


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    """The tables, seen from beside the service."""
    opened = await open_pool(dsn, application_name="test", max_size=2)
    yield opened
    await opened.close()


class _Keeping(SpanProcessor):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


@pytest.fixture
def ended_spans() -> Iterator[list[ReadableSpan]]:
    """What this process told of its work so far."""
    keeping = _Keeping()
    tracing.use_provider(tracing.make_provider(keeping))
    yield keeping.spans
    tracing.use_provider(tracing.make_provider())
