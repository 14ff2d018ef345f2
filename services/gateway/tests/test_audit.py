from __future__ import annotations

import asyncio

import asyncpg
import httpx2
import pytest

import popagent_gateway
from popagent_bus import Bus
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_db.query import prepare_all
from popagent_gateway import audit, audit_store
from popagent_gateway.audit import BATCH_ENTRIES, DROPPED, AuditLog, Entry
from popagent_gateway.door import key_id
from popagent_gateway.wiring import Gateway
from popagent_kit import tasks
from popagent_kit.clock import now
from popagent_proto.chat.sessions import DeleteSession, SessionDeletedView
from popagent_testing.servers import PostgresServer

from .conftest import HERE, Owner, make_settings, own_health

KEY = "the-key-of-this-test"
PASSWORD = "gateway_test"


def entry(path: str = "/api/sessions") -> Entry:
    return Entry(now(), None, "POST", "/api/sessions", path, 201, None)


async def rows(pool: Pool, path: str) -> list[asyncpg.Record]:
    return await pool.fetch("select * from audit_log where path = $1 order by id", path)


async def test_statements_fit_the_schema(pool: Pool) -> None:
    async with pool.acquire() as conn:
        checked = await prepare_all(conn, popagent_gateway)

    assert checked == 2


async def test_a_change_is_kept_with_who_what_and_its_answer(bus: Bus, pool: Pool, chat: Owner) -> None:
    settings = make_settings(api_key=KEY)
    gateway = Gateway(settings, bus, pool, own_health)
    chat.answer(DeleteSession, SessionDeletedView(id="gone"))
    headers = {"x-popagent-key": KEY}

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(gateway.app), base_url=HERE) as http:
        await http.delete("/api/sessions/gone", headers=headers)
        await http.post("/api/chat/gone", headers=headers)
        await http.delete(f"/api/sessions/{KEY}/sk-CANARY0123456789abcdef", headers=headers)
        await http.post("/api/sessions", headers=headers, content=b"{", params={"secret": "in-the-query"})
        await http.get("/favicon.svg", headers=headers)
        await http.delete("/api/sessions/gone", headers={"x-popagent-key": "wrong"})
    await gateway.stop()

    (deleted,) = await rows(pool, "/api/sessions/gone")
    (unrouted,) = await rows(pool, "/api/chat/gone")
    assert len(await rows(pool, "/api/sessions/[redacted:api key]/sk-[redacted]")) == 1
    (refused,) = await rows(pool, "/api/sessions")
    assert (deleted["method"], deleted["route"], deleted["status"]) == ("DELETE", "/api/sessions/{id}", 200)
    assert (deleted["key_id"], len(deleted["trace_id"])) == (key_id(settings), 32)
    assert KEY not in str(list(deleted.values()))
    assert (unrouted["route"], unrouted["status"]) == ("unmatched", 404)
    assert (refused["route"], refused["status"]) == ("unmatched", 415)


async def test_a_database_that_is_away_delays_no_answer_and_loses_no_entry(
    private_postgres: PostgresServer, bus: Bus, chat: Owner
) -> None:
    await bootstrap(private_postgres.dsn(), ["gateway"], {"gateway": PASSWORD})
    dsn = role_dsn(private_postgres.dsn(), "gateway", PASSWORD)
    await migrate(dsn, "gateway")
    pool = await open_pool(dsn, application_name="test", max_size=2)
    gateway = Gateway(make_settings(), bus, pool, own_health)
    chat.answer(DeleteSession, SessionDeletedView(id="s1"))
    await gateway.start()
    private_postgres.stop(immediate=True)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(gateway.app), base_url=HERE) as http:
        async with asyncio.timeout(1):
            answer = await http.delete("/api/sessions/s1")
    private_postgres.start()
    await gateway.stop()

    assert answer.status_code == 200
    assert len(await rows(pool, "/api/sessions/s1")) == 1
    await pool.close()


async def test_entries_of_one_moment_are_stored_together(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "GATHER_S", 0.5)
    audit_log = AuditLog(pool, 90)
    audit_log.note(entry("/first"))
    writing = asyncio.create_task(audit_log.run())
    while not await rows(pool, "/first"):
        await asyncio.sleep(0.01)

    audit_log.note(entry("/together"))
    await pool.fetchval("select 1")
    audit_log.note(entry("/together"))
    while len(stored := await pool.fetch("select xmin from audit_log where path = '/together'")) < 2:
        await asyncio.sleep(0.01)

    await tasks.end(writing)
    assert stored[0] == stored[1]


async def test_a_full_queue_drops_and_counts(pool: Pool) -> None:
    audit_log = AuditLog(pool, 90, queue_entries=BATCH_ENTRIES + 1)
    before = DROPPED._value.get()

    for _ in range(BATCH_ENTRIES + 3):
        audit_log.note(entry("/full"))
    await audit_log.flush()

    assert DROPPED._value.get() - before == 2
    assert len(await rows(pool, "/full")) == BATCH_ENTRIES + 1


async def test_an_error_nobody_thought_of_does_not_end_the_log_of_changes(
    pool: Pool, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "PAUSE_S", 0.01)
    failing = asyncio.Event()

    async def fail(*_: object) -> int:
        failing.set()
        raise asyncpg.PostgresSyntaxError("nobody thought of this")

    gateway = Gateway(make_settings(), bus, pool, own_health)
    with monkeypatch.context() as broken:
        broken.setattr(type(audit_store.APPEND), "run", fail)
        await gateway.start()
        gateway.audit_log.note(entry("/outlived"))
        await asyncio.wait_for(failing.wait(), 5)
    async with asyncio.timeout(5):
        while not await rows(pool, "/outlived"):
            await asyncio.sleep(0.01)
    await gateway.stop()

    assert len(await rows(pool, "/outlived")) == 1


async def test_old_entries_are_removed(pool: Pool) -> None:
    await pool.execute(
        """
        insert into audit_log (at, method, route, path, status)
        select now() - make_interval(days => days), 'PUT', '/', '/old', 200 from unnest(array[1, 89, 91, 400]) as days
        """
    )
    audit_log = AuditLog(pool, 90)
    audit_log.note(entry("/written"))

    writer = asyncio.create_task(audit_log.run())
    async with asyncio.timeout(5):
        while not await rows(pool, "/written"):
            await asyncio.sleep(0.01)
    writer.cancel()

    assert len(await rows(pool, "/old")) == 2
