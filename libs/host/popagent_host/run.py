"""The life of a service process: settings, log, telemetry, pool, bus, relay, work, requests; and back in this order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final, Generic, TypeVar
from urllib.parse import urlsplit

import uvloop

from popagent_bus import Bus, Handlers
from popagent_db.migrate import require_version
from popagent_db.pool import Pool, open_pool
from popagent_host.health import OK, Health, HealthServer
from popagent_host.service import S, Served, Service, guarded
from popagent_host.settings import ServiceSettings
from popagent_kit import log as kit_log
from popagent_kit import tasks
from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.ids import new_id
from popagent_kit.settings import reveal
from popagent_proto.common import HEALTH_QUERIES, HealthQuery, HealthView
from popagent_proto.matrix import EVENTS
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_telemetry import metrics, redact, register_secret, set_up

AGAIN_S: Final = 0.3
# What one request makes is mostly gone before it is over; the collector's own 700 make it look in the middle of each.
YOUNG_OBJECTS: Final = 10_000
# Exit codes: a setting is wrong (starting again does not help), the start or the work failed.
MISCONFIGURED: Final = 78
FAILED: Final = 1

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServiceDefinition(Generic[S]):
    """What makes one service different: its name, its settings, and what `build` adds to the empty service."""

    name: str
    settings: type[S]
    build: Callable[[Service[S]], Awaitable[None]] | None = None


def run(definition: ServiceDefinition[Any]) -> None:
    """Run the service until SIGTERM or SIGINT and end the process: code 0 after a stop, 78 for a wrong setting."""
    settings_class = definition.settings.for_service(definition.name)
    try:
        settings = settings_class.load()
        settings.required("database_url")
        settings.required("nats_url")
        _register_secrets(settings)
    except AppError as error:
        sys.stderr.write(f"{definition.name}: {error.message}\n")
        sys.exit(MISCONFIGURED)
    kit_log.set_up(level=settings.log_level, plain=settings.log_format == "plain", redact=redact)
    sys.exit(uvloop.run(live(definition, settings)))


def _register_secrets(settings: ServiceSettings) -> None:
    """Keep every secret setting out of logs and all else from here on; of an address it is the password."""
    for name, variable, secret in settings.declared():
        value = reveal(getattr(settings, name)) if secret else None
        if value is not None:
            register_secret(urlsplit(value).password if "://" in value else value, variable)


async def live(definition: ServiceDefinition[S], settings: S, stop: asyncio.Event | None = None) -> int:
    """Start, serve until a signal (or `stop`), end in order; returns the exit code."""
    asked = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    if stop is None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, asked.set)
    failed: asyncio.Future[None] = loop.create_future()
    health = Health(definition.name, _version(), failed)
    code = 0
    async with AsyncExitStack() as closing:
        starting = asyncio.create_task(_start(definition, settings, health, closing, failed))
        waiting = asyncio.create_task(asked.wait())
        try:
            await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                if stop is None:
                    # What was made at start stays for ever; the collector need not walk it in the middle of a turn.
                    gc.collect()
                    gc.freeze()
                    gc.set_threshold(YOUNG_OBJECTS)
                health.move_to(OK)
                log.info("%s is ready", definition.name)
                ends: list[asyncio.Future[Any]] = [waiting, failed]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                if failed.done():
                    failed.result()
        except AppError as error:
            log.error("%s cannot go on: %s", definition.name, error.message)
            code = MISCONFIGURED if error.code == "configuration" else FAILED
        except Exception:
            log.exception("%s cannot go on", definition.name)
            code = FAILED
        await tasks.end(starting, waiting)
        health.move_to("stopping")
        log.info("%s is stopping", definition.name)
    failed.cancel()
    log.info("%s has stopped", definition.name)
    return code


async def _start(
    definition: ServiceDefinition[S],
    settings: S,
    health: Health,
    closing: AsyncExitStack,
    failed: asyncio.Future[None],
) -> None:
    """Open everything; what is pushed on `closing` ends in the reverse order."""
    telemetry = set_up(definition.name, new_id())
    server = HealthServer(health, settings.health_port)
    await server.open()
    closing.push_async_callback(guarded, server.close)
    log.info("health and metrics on http://127.0.0.1:%d", server.port)
    lag = tasks.lasting(metrics.watch_event_loop, "event loop lag")
    closing.push_async_callback(tasks.end, lag)

    pool, bus = await _open(definition.name, settings, health, closing)
    telemetry.start(bus.send_telemetry)
    closing.push_async_callback(guarded, telemetry.stop)

    pulse = Pulse(pool)
    pulse.start()
    closing.push_async_callback(guarded, pulse.stop)
    outbox = Outbox(pool, bus.publish, stream_state=lambda: bus.stream_state(EVENTS))

    async def look_at_stream() -> None:
        outbox.stream_may_be_new()

    bus.on_reconnect(look_at_stream)
    outbox.start(pulse)
    closing.push_async_callback(guarded, outbox.stop)

    holder = Holder.of_this_process(settings.boot_id)
    service = Service(definition.name, settings, pool, bus, outbox, pulse, holder, health, closing, failed)
    if definition.build is not None:
        await definition.build(service)
    served = service.served or Served(Handlers(), None, 1)
    served.handlers.answers(_health_query(definition.name))(_health_handler(health))
    await bus.serve(served.handlers, served.deps, max_workers=served.max_workers)
    closing.push_async_callback(guarded, bus.stop_serving)


async def _open(name: str, settings: ServiceSettings, health: Health, closing: AsyncExitStack) -> tuple[Pool, Bus]:
    database_url, nats_url = settings.required("database_url"), settings.required("nats_url")

    async def open_database() -> Pool:
        return await open_pool(database_url, application_name=f"popagent-{name}", max_size=settings.pool_size)

    pool = await _patiently(open_database, "PostgreSQL", health)
    closing.push_async_callback(guarded, pool.close)
    health.add("postgres", pool.check)
    await require_version(pool, name)

    async def connect() -> Bus:
        return await Bus.connect(nats_url, service=name)

    bus = await _patiently(connect, "NATS", health)
    closing.push_async_callback(guarded, bus.drain)

    async def check_bus() -> None:
        if (problem := bus.state.problem()) is not None:
            raise UnavailableError(problem)

    health.add("nats", check_bus)
    return pool, bus


async def _patiently(attempt: Callable[[], Awaitable[T]], what: str, health: Health) -> T:
    """Try until it is there: a server that starts later, or is away, is waited for; a refusal is not."""
    told = False
    while True:
        try:
            return await attempt()
        except UnavailableError as error:
            if not told:
                log.warning("waiting for %s: %s", what, error.message)
            told = True
            health.move_to(f"waiting for {what}")
            await asyncio.sleep(AGAIN_S)


def _health_query(name: str) -> type[HealthQuery]:
    return HEALTH_QUERIES[name]


def _health_handler(health: Health) -> Callable[[Any, HealthQuery], Awaitable[HealthView]]:
    async def answer(_: Any, query: HealthQuery) -> HealthView:
        return await health.view()

    return answer


def _version() -> str:
    try:
        return metadata.version("popagent")
    except metadata.PackageNotFoundError:
        return os.environ.get("POPAGENT_VERSION", "unknown")
