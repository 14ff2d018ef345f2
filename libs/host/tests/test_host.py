from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from popagent_bus import Handlers
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_host import Service, ServiceDefinition, ServiceSettings, health, live
from popagent_kit import json
from popagent_kit.errors import ConfigurationError, UnavailableError
from popagent_local.ports import free_port
from popagent_proto import matrix
from popagent_proto.common import SchedulerHealth
from popagent_rows import inbox
from popagent_testing.plugin import role_password
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, Echo, EchoView, ThingHappened, until

SERVICES = ("chat", "task-runner", "scheduler", "evolution-worker", "docs-indexer")
EMPTY_SERVICES = ("scheduler", "evolution-worker", "docs-indexer")


def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body; (0, b"") when nobody listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read()
    except HTTPError as error:
        return error.code, error.read()
    except (URLError, ConnectionError):
        return 0, b""


async def status(port: int, path: str) -> int:
    return (await asyncio.to_thread(get, port, path))[0]


@dataclass
class Running:
    process: asyncio.subprocess.Process
    port: int

    async def ready(self) -> bool:
        return await status(self.port, "/readyz") == 200

    async def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            return await self.process.wait()


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


@pytest.fixture
async def admin_dsn(make_database: Callable[..., str]) -> str:
    """A database with the roles and schemas of every service, not migrated."""
    dsn = await asyncio.to_thread(make_database)
    await bootstrap(dsn, SERVICES, {name: role_password(name) for name in SERVICES})
    return dsn


def environment(name: str, port: int, admin_dsn: str, nats: NatsServer) -> dict[str, str]:
    row = matrix.BY_NAME[name]
    address = nats.url.removeprefix("nats://")
    return {
        f"{row.env_prefix}_DATABASE_URL": role_dsn(admin_dsn, name, role_password(name)),
        f"{row.env_prefix}_NATS_URL": f"nats://{row.role}:{PASSWORDS[name]}@{address}",
        f"{row.env_prefix}_HEALTH_PORT": str(port),
    }


@pytest.fixture
async def start() -> AsyncIterator[Any]:
    processes: list[asyncio.subprocess.Process] = []

    async def starting(name: str, env: dict[str, str]) -> Running:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            matrix.BY_NAME[name].package,
            env={"PATH": os.environ["PATH"], **env},
            stderr=asyncio.subprocess.PIPE,
        )
        processes.append(process)
        port = next((int(value) for key, value in env.items() if key.endswith("_HEALTH_PORT")), 0)
        return Running(process, port)

    yield starting
    for process in processes:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.mark.parametrize("name", EMPTY_SERVICES)
async def test_an_empty_service_starts_tells_how_it_is_and_stops_with_code_zero(
    name: str, start: Any, admin_dsn: str, suite_nats: NatsServer, connect_as: ConnectAs
) -> None:
    env = environment(name, free_port(), admin_dsn, suite_nats)
    await migrate(env[f"{matrix.BY_NAME[name].env_prefix}_DATABASE_URL"], name)

    running = await start(name, env)
    await until(running.ready)
    readiness = json.loads(get(running.port, "/readyz")[1])
    figures = get(running.port, "/metrics")[1]
    gateway = await connect_as("gateway")

    assert (readiness["service"], readiness["checks"]) == (name, {"postgres": "ok", "nats": "ok"})
    assert get(running.port, "/livez") == (200, b"ok")
    for metric in (b"process_resident_memory_bytes", b"popagent_event_loop_lag_seconds", b"popagent_ready 1"):
        assert metric in figures
    if name == "scheduler":
        assert (await gateway.ask(SchedulerHealth())).ready
    assert await running.stop() == 0


async def test_a_missing_address_ends_the_start_with_its_name(start: Any) -> None:
    running = await start("scheduler", {"POPAGENT_HOME": "/nonexistent"})

    _, errors = await running.process.communicate()

    assert running.process.returncode == 78
    assert b"POPAGENT_SCHEDULER_DATABASE_URL is not set" in errors


async def test_a_taken_health_port_is_told_with_its_variable() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        server = health.HealthServer(health.Health("task-runner", "test"), other.getsockname()[1])

        with pytest.raises(ConfigurationError, match="POPAGENT_TASK_RUNNER_HEALTH_PORT"):
            await server.open()


async def test_a_schema_without_migrations_is_refused_with_what_to_run(
    start: Any, admin_dsn: str, suite_nats: NatsServer
) -> None:
    running = await start("scheduler", environment("scheduler", free_port(), admin_dsn, suite_nats))

    _, errors = await running.process.communicate()

    assert running.process.returncode == 78
    assert b"run `popagent migrate`" in errors
    assert role_password("scheduler").encode() not in errors


@pytest.fixture
def private_suite_nats(make_nats: Callable[[str], NatsServer]) -> NatsServer:
    return make_nats(matrix.nats_authorization(PASSWORDS))


async def test_servers_that_come_later_or_restart_need_no_restart_of_ours(
    start: Any, private_postgres: PostgresServer, private_suite_nats: NatsServer
) -> None:
    dsn = private_postgres.dsn("popagent")
    await bootstrap(dsn, ("scheduler",), {"scheduler": role_password("scheduler")})
    env = environment("scheduler", free_port(), dsn, private_suite_nats)
    await migrate(env["POPAGENT_SCHEDULER_DATABASE_URL"], "scheduler")
    private_postgres.stop(immediate=True)
    private_suite_nats.kill()
    running = await start("scheduler", env)

    async def lives() -> bool:
        return await status(running.port, "/livez") == 200

    async def unready() -> bool:
        return await status(running.port, "/readyz") == 503

    await until(lives)
    assert await unready()
    await asyncio.to_thread(private_postgres.start)
    await asyncio.to_thread(private_suite_nats.start)
    await until(running.ready)
    await asyncio.to_thread(private_postgres.stop, immediate=True)
    await asyncio.to_thread(private_suite_nats.kill)
    await until(unready)
    await asyncio.to_thread(private_postgres.start)
    await asyncio.to_thread(private_suite_nats.start)
    await until(running.ready)

    assert await running.stop() == 0


async def test_a_stop_during_the_start_is_obeyed(start: Any, suite_nats: NatsServer) -> None:
    nowhere = f"postgresql://admin@127.0.0.1:{free_port()}/popagent"
    running = await start("scheduler", environment("scheduler", free_port(), nowhere, suite_nats))

    async def lives() -> bool:
        return await status(running.port, "/livez") == 200

    await until(lives)

    assert await running.stop() == 0


class Chat:
    """A small service in this process, with work, a request and an event."""

    def __init__(self, admin_dsn: str, nats: NatsServer) -> None:
        self.order: list[str] = []
        self.stop = asyncio.Event()
        self.asked = asyncio.Event()
        env = environment("chat", 0, admin_dsn, nats)
        self.settings = ServiceSettings.for_service("chat").load(environ=env)
        self.service: Service[ServiceSettings] | None = None

    async def build(self, service: Service[ServiceSettings]) -> None:
        handlers: Handlers[Chat] = Handlers()

        @handlers.answers(Echo)
        async def echo(chat: Chat, command: Echo) -> EchoView:
            event = ThingHappened(aggregate_id="a", version=1, thing=command.text)
            async with service.outbox.transaction() as conn:
                await inbox.once(conn, "test", command.text)
                await service.outbox.add(conn, event)
            if command.text == "last":
                chat.asked.set()
                await chat.stop.wait()
                await asyncio.sleep(0.1)
            chat.order.append("request")
            return EchoView(text=command.text)

        async def finish_work() -> None:
            self.order.append("work")
            await service.pool.check()
            assert service.bus.connected

        service.on_stop(finish_work)
        service.serve(handlers, self)
        self.service = service

    async def run(self) -> int:
        return await live(ServiceDefinition("chat", ServiceSettings, self.build), self.settings, self.stop)


@pytest.fixture
async def chat(admin_dsn: str, suite_nats: NatsServer) -> Chat:
    chat = Chat(admin_dsn, suite_nats)
    await migrate(chat.settings.required("database_url"), "chat")
    return chat


async def test_a_stop_finishes_requests_then_work_then_events_and_loses_nothing(
    chat: Chat, connect_as: ConnectAs
) -> None:
    gateway = await connect_as("gateway")
    running = asyncio.create_task(chat.run())
    asked = asyncio.create_task(gateway.ask(Echo(text="last")))
    await chat.asked.wait()

    chat.stop.set()
    code = await running

    assert code == 0
    assert (await asked).text == "last"
    assert chat.order == ["request", "work"]
    assert (await connect_stored(gateway))[-1].subject == ThingHappened.subject


async def connect_stored(gateway: Any) -> Any:
    return (await gateway.direct_get(matrix.EVENTS, "popagent.chat.evt.>")).messages


async def test_the_trace_of_a_request_reaches_the_stream_redacted(chat: Chat, connect_as: ConnectAs) -> None:
    gateway, observer = await connect_as("gateway"), await connect_as("observability")
    batches: list[bytes] = []
    handlers: Handlers[None] = Handlers()

    @handlers.takes("observability-telemetry")
    async def take(_: None, message: Any) -> None:
        batches.append(message.data)

    await observer.serve(handlers, None)
    running = asyncio.create_task(chat.run())
    await gateway.ask(Echo(text="sk-CANARY0123456789"))
    await until(lambda: any(b"answer chat.cmd.tests-echo" in batch for batch in batches), timeout_s=3)
    chat.stop.set()
    await running

    assert all(b"CANARY" not in batch for batch in batches)


async def test_work_beside_that_fails_ends_the_process_with_an_error(chat: Chat) -> None:
    async def build(service: Service[ServiceSettings]) -> None:
        async def broken() -> None:
            await asyncio.sleep(0.05)
            raise UnavailableError("the door fell off")

        service.run_beside(broken(), "door")

    definition = ServiceDefinition("chat", ServiceSettings, build)

    assert await live(definition, chat.settings, chat.stop) == 1


async def test_a_process_whose_supervised_part_ended_hangs_until_it_is_gone() -> None:
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    seen = health.Health("chat", "1", failed)
    server = health.HealthServer(seen, 0)
    await server.open()

    before = seen.hang()
    lived = await asyncio.to_thread(get, server.port, "/livez")
    failed.set_exception(RuntimeError("the door ended by itself"))
    code, said = await asyncio.to_thread(get, server.port, "/livez")
    await server.close()

    assert before is None
    assert lived == (200, b"ok")
    assert "the door ended by itself" in str(seen.hang())
    assert (code, b"the door ended by itself" in said) == (503, True)
    assert failed.exception() is not None
