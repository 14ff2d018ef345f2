from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from popagent_bus import Bus, Handlers
from popagent_bus.streams import declare
from popagent_db.pool import Pool, open_pool
from popagent_gateway.server import DoorServer
from popagent_gateway.settings import GatewaySettings
from popagent_gateway.wiring import Gateway
from popagent_kit.errors import AppError
from popagent_proto.base import Message, Request
from popagent_proto.common import HealthView
from popagent_testing.plugin import NatsAddress, run_apart

HERE = "http://127.0.0.1:8420"

Script = Callable[[Any], Any | Awaitable[Any]]


@dataclass
class Owner:
    """A peer of the contract that answers as a test tells it, and remembers what it was asked."""

    bus: Bus
    asked: list[Request[Any]] = field(default_factory=list)
    script: dict[type[Request[Any]], Script] = field(default_factory=dict)

    def answer(self, message: type[Request[Any]], script: Script | AppError | object) -> None:
        self.script[message] = script if callable(script) else lambda _: script

    def last(self) -> Any:
        return self.asked[-1]


async def start_owner(url: str, service: str, messages: list[type[Request[Any]]], **credentials: str) -> Owner:
    owner = Owner(await Bus.connect(url, service=service, **credentials))
    handlers = Handlers[Owner]()

    def register(message: type[Request[Any]]) -> None:
        async def handle(deps: Owner, request: Request[Any]) -> Any:
            deps.asked.append(request)
            reply = deps.script[type(request)](request)
            if asyncio.iscoroutine(reply):
                reply = await reply
            if isinstance(reply, AppError):
                raise reply
            return reply

        handlers.answers(message)(handle)

    for message in messages:
        register(message)
    await owner.bus.serve(handlers, owner)
    return owner


def requests_of(service: str) -> list[type[Request[Any]]]:
    """Every request of the contracts that `service` answers."""
    found = [message for message in Message.registry.values() if message.subject_parts()[0] == service]
    return [message for message in found if issubclass(message, Request)]


@pytest.fixture(scope="session")
def nats_url(nats_server: NatsAddress) -> str:
    run_apart(declare(nats_server.url))
    return nats_server.url


@pytest.fixture(scope="module")
def gateway_dsn(service_database: Callable[[str], str]) -> str:
    return service_database("gateway")


@pytest.fixture
async def pool(gateway_dsn: str) -> AsyncIterator[Pool]:
    opened = await open_pool(gateway_dsn, application_name="test", max_size=2)
    yield opened
    await opened.close()


@pytest.fixture
async def chat(nats_url: str) -> AsyncIterator[Owner]:
    owner = await start_owner(nats_url, "chat", requests_of("chat"))
    yield owner
    await owner.bus.drain()


@pytest.fixture
async def observability(nats_url: str) -> AsyncIterator[Owner]:
    owner = await start_owner(nats_url, "observability", requests_of("observability"))
    yield owner
    await owner.bus.drain()


@pytest.fixture
async def task_runner(nats_url: str) -> AsyncIterator[Owner]:
    owner = await start_owner(nats_url, "task-runner", requests_of("task-runner"))
    yield owner
    await owner.bus.drain()


@pytest.fixture
async def docs_indexer(nats_url: str) -> AsyncIterator[Owner]:
    owner = await start_owner(nats_url, "docs-indexer", requests_of("docs-indexer"))
    yield owner
    await owner.bus.drain()


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[Bus]:
    connected = await Bus.connect(nats_url, service="gateway")
    yield connected
    await connected.drain()


async def own_health() -> HealthView:
    return HealthView(service="gateway", version="test", ready=True, checks={"bus": "ok"})


def make_settings(**values: object) -> GatewaySettings:
    return GatewaySettings.model_validate(values)


@pytest.fixture
async def gateway(bus: Bus, pool: Pool) -> AsyncIterator[Gateway]:
    made = Gateway(make_settings(), bus, pool, own_health)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def http(gateway: Gateway) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that calls the application directly; for streams use `served`."""
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(gateway.app), base_url=HERE) as client:
        yield client


@dataclass
class Served:
    """The gateway behind a real server on a free port."""

    gateway: Gateway
    server: DoorServer
    http: httpx2.AsyncClient


async def serve(gateway: Gateway, settings: GatewaySettings) -> tuple[DoorServer, asyncio.Task[None]]:
    server = DoorServer(gateway.app, settings, gateway.closing)
    task = asyncio.create_task(server.serve_until_asked())
    await server.listening.wait()
    return server, task


@pytest.fixture
async def served(gateway: Gateway) -> AsyncIterator[Served]:
    server, task = await serve(gateway, make_settings(port=0))
    base_url = f"http://127.0.0.1:{server.port}"
    async with httpx2.AsyncClient(base_url=base_url, timeout=30) as client:
        yield Served(gateway, server, client)
    server.ask_to_exit()
    await task


@dataclass(frozen=True)
class SseEvent:
    name: str
    id: str | None
    data: str


async def events_of(response: httpx2.Response) -> AsyncIterator[SseEvent]:
    """Parse server-sent events, comments left out."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield SseEvent(fields.get("event", "message"), fields.get("id"), fields.get("data", ""))
            fields = {}
