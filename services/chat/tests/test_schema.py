from __future__ import annotations

from collections.abc import Callable

import pytest

import popagent_chat
import popagent_runs
from popagent_chat.agents import store as agents
from popagent_chat.runtime_settings import store as runtime_settings
from popagent_chat.threads.indexing import SearchIndex
from popagent_db.bootstrap import bootstrap, role_dsn
from popagent_db.migrate import migrate
from popagent_db.pool import Pool, open_pool
from popagent_db.query import prepare_all
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import ListSessions
from popagent_proto.chat.settings import GetAgentRuntime, seeded_agent_runtime
from popagent_testing.plugin import execute, role_password
from services.chat.tests.conftest import ChatOn
from services.chat.tests.running import Door

LAST = ["web-search", "companyStatus"]


async def test_every_statement_fits_the_migrated_schema(pool: Pool) -> None:
    async with pool.acquire() as conn:
        assert await prepare_all(conn, popagent_chat) > 40
        assert await prepare_all(conn, popagent_runs) > 0


async def test_migrating_again_changes_nothing(dsn: str, pool: Pool) -> None:
    seeds = "select (select count(*) from agents), (select count(*) from workspaces), m.* from schema_migrations m"
    before = await pool.fetch(seeds)

    await migrate(dsn, "chat")

    assert await pool.fetch(seeds) == before


async def test_settings_have_no_defaults_in_the_database(pool: Pool) -> None:
    defaults = await pool.fetch(
        "select column_name from information_schema.columns "
        "where table_name = 'agent_runtime_settings' and column_default is not null"
    )

    assert defaults == []
    assert await pool.fetchval("select count(*) from agent_runtime_settings") == 1


async def test_a_new_installation_begins_with_the_defaults_that_the_contract_tells(
    service_database: Callable[[str], str],
) -> None:
    pool = await open_pool(service_database("chat"), application_name="test", max_size=1)
    async with pool.acquire() as conn:
        stored = await runtime_settings.GET.one(conn)
    await pool.close()

    assert stored.model_dump(exclude={"revision", "updated_at"}) == seeded_agent_runtime()


async def test_the_orchestrator_is_seeded_with_its_guidance_and_read_by_its_id(pool: Pool) -> None:
    async with pool.acquire() as conn:
        profile = await agents.GET.one(conn, "orchistrator")

    assert (profile.revision, profile.model_override, profile.workspace_access) == (0, None, "read-write")
    assert profile.tools == ["read", "list", "grep", "stat", "edit", "write", "gitStatus", "gitDiff", *LAST]
    assert "agent-implementer" in profile.instructions
    assert "agentCommunication" in profile.instructions
    assert "Blocks marked <context>" in profile.instructions


async def test_a_missing_settings_row_is_an_error_that_a_start_does_not_repair(
    service_database: Callable[[str], str], chat_on: ChatOn, door: Door
) -> None:
    dsn = service_database("chat")
    chat = await chat_on(dsn)
    await chat.pool.execute("delete from agent_runtime_settings")
    await migrate(dsn, "chat")

    with pytest.raises(AppError, match="settings are missing") as refused:
        await door.ask(GetAgentRuntime())
    session = new_id()
    turn = await door.say("hello", session)

    assert refused.value.code == "configuration"
    assert turn.ending["type"] == "error"
    assert "settings are missing" in turn.text
    assert (await door.stored(session))[1] == turn.message
    assert await chat.pool.fetchval("select count(*) from agent_runtime_settings") == 0


async def test_a_server_without_trigrams_searches_all_the_same(
    make_database: Callable[..., str], chat_on: ChatOn, door: Door
) -> None:
    admin, session = make_database(), new_id()
    await bootstrap(admin, ["chat"], {"chat": role_password("chat")})
    await execute(admin, "drop extension pg_trgm")
    dsn = role_dsn(admin, "chat", role_password("chat"))
    await migrate(dsn, "chat")
    chat = await chat_on(dsn)
    await door.say("Hello", session)
    turn = await door.say("a Heron", session)

    fresh = await door.ask(ListSessions(q="heron"))
    await SearchIndex(chat.pool).keep_up()
    read = await door.ask(ListSessions(q="heron"))

    assert fresh == read
    assert [item.match and item.match.message_id for item in read.items] == [turn.view.message_id]
