"""NATS and PostgreSQL killed under running turns, and chat itself."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from popagent_bus.streams import declare
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Connection
from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_runs import late_rows
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.plugin import run_apart
from popagent_testing.servers import NatsServer, PostgresServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs, suite_nats, until
from services.chat.tests.conftest import ChatOn
from services.chat.tests.running import Chat, Door

__all__ = ["suite_nats"]

LONG = " ".join(f"w{number}" for number in range(400))


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    server = PostgresServer(tmp_path_factory.mktemp("own-postgres"))
    server.start()

    async def prepare() -> None:
        await bootstrap(server.dsn("popagent"), ["chat"], {"chat": "secret"})
        await migrate(role_dsn(server.dsn("popagent"), "chat", "secret"), "chat")

    run_apart(prepare())
    yield server
    server.stop(immediate=True)


@pytest.fixture
def own_postgres(own_server: PostgresServer) -> PostgresServer:
    """A server with a chat database that the tests of this module may break."""
    # Started anew by this thread: a server ends with the thread that started it, and tests start it from others.
    own_server.restart(immediate=True)
    return own_server


@pytest.fixture
async def own_chat(own_postgres: PostgresServer, chat_on: ChatOn) -> Chat:
    return await chat_on(role_dsn(own_postgres.dsn("popagent"), "chat", "secret"))


@pytest.mark.parametrize("outage", ["restarted", "away", "wiped"])
async def test_nats_killed_in_mid_turn_gives_the_same_stream_to_the_last_chunk(
    outage: str, suite_nats: NatsServer, chat_on: ChatOn, dsn: str, door: Door, model: ModelServer
) -> None:
    await chat_on(dsn)
    session = new_id()
    model.script(Reply(text=LONG, token_delay_s=0.004))
    turn = await door.start("write", session)
    await turn.read(until="w100")

    if outage == "away":
        await asyncio.to_thread(suite_nats.kill)
        await asyncio.sleep(1.5)  # a checkpoint is stored in the meantime
        await asyncio.to_thread(suite_nats.start)
    else:
        await asyncio.to_thread(suite_nats.restart if outage == "restarted" else suite_nats.wipe)
    if outage == "wiped":
        await declare(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])
    await turn.read()

    assert turn.text == LONG
    assert turn.ending["type"] == "finish"
    assert (await door.stored(session))[1] == turn.message


async def test_postgres_restarted_while_the_model_answers_costs_the_turn_nothing(
    own_chat: Chat, own_postgres: PostgresServer, door: Door, model: ModelServer
) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")

    await asyncio.to_thread(own_postgres.restart, True)
    model.release()
    await turn.read()

    assert turn.text == "one two three"
    assert turn.ending["type"] == "finish"
    assert (await door.stored(session))[1] == turn.message
    assert (await door.say("again", session)).text == "again"


async def test_the_end_of_a_turn_and_what_it_cost_wait_for_a_database_that_is_away(
    own_chat: Chat,
    own_postgres: PostgresServer,
    door: Door,
    model: ModelServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_rows, "AWAY_S", 0.0)
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")

    await asyncio.to_thread(own_postgres.stop, True)
    model.release()
    await until(lambda: "the end of a turn waits for the database" in caplog.text)
    assert not turn.order.ended
    await asyncio.to_thread(own_postgres.start)
    await turn.read()
    await door.say("and again", session)

    assert turn.ending["type"] == "finish"
    assert (await door.stored(session))[1] == turn.message
    calls = "select finish_reason from model_usage where turn_id = $1"
    assert [row["finish_reason"] for row in await own_chat.pool.fetch(calls, turn.view.turn_id)] == ["stop"]


@pytest.mark.parametrize("outage", ["away", "silent at the commit"])
async def test_what_a_specialist_did_is_kept_once_whatever_the_database_does_meanwhile(
    outage: str,
    own_chat: Chat,
    own_postgres: PostgresServer,
    door: Door,
    model: ModelServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("INFO")
    transaction = own_chat.pool.transaction

    @asynccontextmanager
    async def ends_without_an_answer() -> AsyncIterator[Connection]:
        async with transaction() as conn:
            yield conn
        monkeypatch.undo()
        raise UnavailableError("no answer to a commit")

    ask = ScriptedCall("agent-researcher", '{"prompt": "Which word is it today?"}')
    model.script(Reply(tool_calls=(ask,)), Reply(text="It is heron.", after=1, hold=True), Reply(text="heron"))
    turn = await door.start("Which word is it?", new_id())
    await until(lambda: model.held == 1)

    if outage == "away":
        await asyncio.to_thread(own_postgres.stop, True)
    else:
        monkeypatch.setattr(own_chat.pool, "transaction", ends_without_an_answer)
    model.release()
    await until(lambda: "the thread of a delegate waits for the database" in caplog.text)
    if outage == "away":
        await asyncio.to_thread(own_postgres.start)
    await turn.read()

    assert turn.text == "heron"
    kept = await own_chat.pool.fetch(
        "select role from messages join delegations using (thread_id) where turn_id = $1 order by seq",
        turn.view.turn_id,
    )
    assert [row["role"] for row in kept] == ["user", "assistant"]


async def test_an_end_whose_commit_was_not_answered_is_not_written_twice(
    own_chat: Chat, own_postgres: PostgresServer, door: Door, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire = own_chat.pool.acquire
    lost = asyncio.Event()

    @asynccontextmanager
    async def ends_without_an_answer(timeout_s: float = 5) -> AsyncIterator[Connection]:
        async with acquire(timeout_s) as conn:
            yield conn
            state = await conn.fetchval("select state from turns where id = $1", turn.view.turn_id)
        if state == "completed" and not lost.is_set():
            lost.set()
            raise UnavailableError("The database does not answer.")

    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")
    monkeypatch.setattr(own_chat.pool, "acquire", ends_without_an_answer)
    model.release()
    await turn.read()

    assert lost.is_set()
    assert turn.ending["type"] == "finish"
    assert (await door.stored(session))[1] == turn.message


async def test_a_turn_that_begins_while_the_database_goes_away_is_carried_out_when_it_is_back(
    own_chat: Chat, own_postgres: PostgresServer, door: Door
) -> None:
    lock = await own_chat.pool.connect()
    await lock.execute("begin; lock table agents in access exclusive mode")
    session = new_id()
    turn = await door.start("hello", session)

    await asyncio.to_thread(own_postgres.restart, True)
    lock.terminate()
    await turn.read()

    assert (turn.ending["type"], turn.text) == ("finish", "hello")
    assert (await door.stored(session))[1] == turn.message


async def test_without_a_database_requests_are_refused_for_the_time_being(
    own_chat: Chat, own_postgres: PostgresServer, door: Door
) -> None:
    await asyncio.to_thread(own_postgres.stop, True)

    with pytest.raises(AppError) as refused:
        await door.start("hello", new_id())

    assert (refused.value.http_status, refused.value.retryable) == (503, True)
    await asyncio.to_thread(own_postgres.start)
    assert (await door.say("hello", new_id())).text == "hello"


class Process:
    """`python -m popagent_chat` as the supervisor starts it, to be killed."""

    def __init__(self, dsn: str, nats: NatsServer, root: Path, model: ModelServer) -> None:
        row = matrix.BY_NAME["chat"]
        address = nats.url.removeprefix("nats://")
        self.env = {
            "PATH": os.environ["PATH"],
            "POPAGENT_HOME": str(root.parent / "home"),
            f"{row.env_prefix}_DATABASE_URL": dsn,
            f"{row.env_prefix}_NATS_URL": f"nats://{row.role}:{PASSWORDS['chat']}@{address}",
            "POPAGENT_WORKSPACE_ROOT": str(root),
            "POPAGENT_MODEL_URL": model.url,
            "POPAGENT_MODEL": "scripted-model",
        }
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "popagent_chat", env=self.env, stderr=asyncio.subprocess.DEVNULL
        )

    async def kill(self) -> None:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(True, id="after its first words"),
        pytest.param(False, id="before its first word", marks=pytest.mark.full),
    ],
)
async def test_a_process_killed_in_mid_turn_is_replaced_within_lease_and_five_seconds(
    said: bool,
    service_database: Callable[[str], str],
    suite_nats: NatsServer,
    connect_as: ConnectAs,
    root: Path,
    model: ModelServer,
    chat_on: ChatOn,
) -> None:
    dsn = service_database("chat")
    door = Door(await connect_as("gateway"))
    doomed = Process(dsn, suite_nats, root, model)
    await doomed.start()
    try:
        session = new_id()
        model.script(Reply(text="one two three", after=2, hold=True) if said else Reply(header_delay_s=60))
        await until(lambda: _answers(door, session), timeout_s=60)  # a process begins, on a busy machine
        turn = await door.start("count", session)
        if said:
            await turn.read(until="two")
        else:
            await model.until(lambda server: bool(server.requests))
        survivor = await chat_on(dsn)

        started = time.monotonic()
        await doomed.kill()
        await turn.read()
        took_s = time.monotonic() - started
    finally:
        await doomed.kill()

    assert took_s < 15
    assert (await door.stored(session))[1] == turn.message
    assert (turn.ending["type"], turn.text) == (("error", "one two") if said else ("finish", "count"))
    assert await survivor.pool.fetchval("select count(*) from messages where thread_id = $1", session) == 2
    model.reset()
    assert (await door.say("again", session)).text == "again"


async def _answers(door: Door, session: str) -> bool:
    try:
        await door.stored(session)
    except AppError as error:
        return error.http_status == 404
    return True
