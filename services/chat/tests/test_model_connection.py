"""The model connection of the page: saved with a sealed key, used by the next run, tried without being stored."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit import sealing
from popagent_kit.errors import ConflictError, RevisionConflictError
from popagent_kit.ids import new_id
from popagent_models import probe
from popagent_proto.base import Request
from popagent_proto.chat.models import (
    AskModelConnection,
    ConnectionTestView,
    DetectModelServers,
    DropModelConnection,
    GetModelConnection,
    ListModels,
    ModelConnectionView,
    PutModelConnection,
)
from popagent_proto.chat.secrets import MODEL_KEY_PURPOSE, GetSealingKey
from popagent_telemetry import redact
from popagent_testing.model_server import ModelList, ModelServer, Reply, ScriptedCall
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, refusal

KEY = "sk-of-a-person-7f3a"
SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def page(model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> ModelServer:
    """Nothing is named in the environment; the server wants a key."""
    monkeypatch.delenv("POPAGENT_MODEL_URL")
    monkeypatch.delenv("POPAGENT_MODEL")
    monkeypatch.setenv("POPAGENT_SECRET_KEY", SECRET_KEY)
    model.key = KEY
    return model


@pytest.fixture
async def nothing_saved(pool: Pool) -> None:
    await pool.execute("delete from secrets")
    await pool.execute("update model_connection set url = null")


@pytest.fixture
async def chat(page: ModelServer, nothing_saved: None, start: StartChat) -> Chat:
    return await start()


@pytest.fixture(autouse=True)
def no_key_is_left(model_server: ModelServer) -> Any:
    yield
    model_server.key = None


async def sealed(door: Door, key: str) -> str:
    public = (await door.ask(GetSealingKey())).public_key
    return sealing.sealed(public, key, MODEL_KEY_PURPOSE)


async def save(door: Door, url: str, *, revision: int | None = None, **fields: Any) -> ModelConnectionView:
    if revision is None:
        revision = (await door.ask(GetModelConnection())).revision
    if fields.get("key") is not None:
        fields["sealed_key"] = await sealed(door, fields.pop("key"))
    elif "key" in fields:
        fields["sealed_key"] = fields.pop("key")
    view: ModelConnectionView = await door.ask(
        PutModelConnection(command_id=new_id(), revision=revision, url=url, **fields)
    )
    return view


async def tried(door: Door, url: str, **fields: Any) -> ConnectionTestView:
    view: ConnectionTestView = await door.bus.ask(AskModelConnection(url=url, **fields))
    return view


@pytest.mark.parametrize("comments", [False, True])
async def test_a_model_that_loads_longer_than_other_requests_may_take_is_told_as_loading(
    chat: Chat, door: Door, page: ModelServer, monkeypatch: pytest.MonkeyPatch, comments: bool
) -> None:
    monkeypatch.setattr(Request, "answer_within_s", 0.8)
    monkeypatch.setattr(probe, "WORDS_S", 1.2)

    async def loading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
                writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 21\r\n\r\n{"data":[{"id":"m"}]}')
                await reader.readuntil(b"\r\n\r\n")
            if comments:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            while comments:
                writer.write(b": loading\n\n" * 1000)
                await writer.drain()
            await reader.read(-1)  # until the other side leaves
        writer.close()

    async with await asyncio.start_server(loading, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        view = await tried(door, url)

    assert (view.ok, view.class_, view.models) == (False, "timeout", ["m"])
    assert "“m” said nothing within 1.2 s. It may still be loading" in view.sentence


def test_trying_a_server_has_the_time_that_it_may_take() -> None:
    assert AskModelConnection.answer_within_s >= probe.LIST_S + probe.WORDS_S + 1


async def test_a_saved_connection_answers_the_next_turn_and_its_key_is_told_by_nobody(
    chat: Chat, door: Door, page: ModelServer, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    before = await door.ask(GetModelConnection())

    saved = await save(door, page.url.removesuffix("/v1"), key=KEY)
    turn = await door.say("hello", new_id())

    assert (before.source, before.url, before.model) == ("none", None, None)
    assert "No model is connected" in (before.last_error or "")
    assert (saved.source, saved.url, saved.has_key, saved.key_hint) == ("page", page.url, True, "7f3a")
    assert (saved.model, saved.last_error) == ("scripted-model", None)
    assert turn.text == "hello"
    assert page.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    dumped = await pool.fetch(
        "select to_jsonb(s)::text from secrets s union all select to_jsonb(o)::text from outbox o "
        "union all select to_jsonb(c)::text from model_connection c"
    )
    assert dumped
    assert KEY not in "".join(row[0] for row in dumped) + caplog.text
    assert (
        await pool.fetchval(
            "select payload::jsonb->>'url' from outbox where aggregate_id = 'model-connection' "
            "order by position desc limit 1"
        )
        == page.url
    )


async def test_every_replica_uses_it_without_a_restart_and_a_running_turn_keeps_its_server(
    chat: Chat, door: Door, page: ModelServer, start: StartChat
) -> None:
    with ModelServer() as other:
        other.models = ModelList(ids=("elsewhere",))
        await save(door, page.url, key=KEY)
        page.script(Reply(tool_calls=(ScriptedCall("list"),), hold=True), Reply(text="a long answer"))
        running = await door.start("hold", new_id())
        await page.until(lambda server: server.held == 1)
        second = await start()

        await save(door, other.url, key=None)
        later = [await door.say("hello", new_id()) for _ in range(6)]
        page.release()
        await running.read()
        await second.stop()

    assert {turn.text for turn in later} == {"hello"}
    assert len(other.requests) == 6
    assert "authorization" not in other.requests[-1].headers
    assert running.text == "a long answer"
    assert len(page.requests) == 2


async def test_a_key_is_kept_for_its_server_only(chat: Chat, door: Door, page: ModelServer) -> None:
    await save(door, page.url, key=KEY)

    kept = await save(door, f"{page.url}/")
    moved = await refusal(save(door, "http://127.0.0.1:9/v1"))
    without = await save(door, page.url, key=None)

    assert (kept.has_key, kept.last_error) == (True, None)
    assert (moved.http_status, moved.field) == (422, "key")
    assert (without.has_key, without.key_hint) == (False, None)
    assert "refuses the key" in (without.last_error or "")


async def test_an_old_revision_is_refused_with_what_is_stored(chat: Chat, door: Door, page: ModelServer) -> None:
    stored = await save(door, page.url, key=KEY)

    error = await refusal(save(door, page.url, revision=stored.revision - 1))

    assert isinstance(error, RevisionConflictError)
    assert error.extra["connection"] == {"url": page.url, "hasKey": True, "revision": stored.revision}


async def test_what_is_forgotten_is_gone_with_its_key(chat: Chat, door: Door, page: ModelServer, pool: Pool) -> None:
    saved = await save(door, page.url, key=KEY)

    gone = await door.ask(DropModelConnection(command_id=new_id()))
    again = await door.ask(DropModelConnection(command_id=new_id()))

    assert (gone.source, gone.url, gone.has_key) == ("none", None, False)
    assert (gone.revision, again.revision) == (saved.revision + 1, saved.revision + 1)
    assert await pool.fetchval("select count(*) from secrets") == 0


async def test_the_environment_goes_before_the_page(
    page: ModelServer, nothing_saved: None, door: Door, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_MODEL_URL", page.url)
    monkeypatch.setenv("POPAGENT_MODEL_KEY", KEY)
    await start()

    view = await door.ask(GetModelConnection())
    error = await refusal(save(door, "http://127.0.0.1:9/v1"))

    assert (view.source, view.url, view.has_key, view.key_hint) == ("environment", page.url, True, "7f3a")
    assert isinstance(error, ConflictError)
    assert "POPAGENT_MODEL_URL" in error.message
    assert "POPAGENT_MODEL_URL" in view.embedded.note


async def test_after_a_change_of_the_secret_key_all_else_works_and_the_key_is_asked_for_again(
    chat: Chat, door: Door, page: ModelServer, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    await save(door, page.url, key=KEY)
    await chat.stop()
    page.log.clear()
    monkeypatch.setenv("POPAGENT_SECRET_KEY", base64.b64encode(bytes(32)).decode())
    changed = await start()

    view = await door.ask(GetModelConnection())
    turn = await door.say("hello", new_id())
    health = await changed.service.health.view()
    asked = len(page.log)
    repaired = await save(door, page.url, key=KEY)

    assert (view.source, view.has_key, view.key_hint) == ("page", True, None)
    assert "POPAGENT_SECRET_KEY is not the key" in (view.last_error or "")
    assert "cannot be used" in turn.text
    assert asked == 0
    assert "cannot be read" in health.checks["secrets"]
    assert (repaired.key_hint, repaired.last_error) == ("7f3a", None)


async def test_without_a_secret_key_a_server_without_a_key_can_be_connected_and_one_with_a_key_says_why_not(
    page: ModelServer, nothing_saved: None, door: Door, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POPAGENT_SECRET_KEY")
    page.key = None
    await start()

    saved = await save(door, page.url)
    error = await refusal(door.ask(GetSealingKey()))

    assert saved.last_error is None
    assert (error.http_status, "POPAGENT_SECRET_KEY" in error.message) == (409, True)


async def test_a_box_for_another_key_is_refused(chat: Chat, door: Door, page: ModelServer) -> None:
    box = sealing.sealed(sealing.public_half(bytes(32)), KEY, MODEL_KEY_PURPOSE)

    error = await refusal(save(door, page.url, sealed_key=box))

    assert (error.http_status, error.code) == (409, "sealed_for_another")


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://127.0.0.1/v1", "127.0.0.1:11434", "http://", "http://u:p@127.0.0.1/v1", "http://u@127.0.0.1/v1"),
        *("http://127.0.0.1:99999/v1", "http://127.0.0.1/v1?key=x", "http://127.0.0.1/v1#x", "http://a b/v1"),
        *("http://127.0.0.1/v1\r\nx: y", "javascript:alert(1)", "file:///etc/passwd", "http://[::1/v1"),
    ],
)
async def test_what_is_no_plain_address_is_refused(url: str, chat: Chat, door: Door) -> None:
    for work in (save(door, url), tried(door, url)):
        error = await refusal(work)
        assert (error.http_status, error.field) == (422, "url"), url
        assert ("Put the key into its own field." in error.message) == ("@" in url)


async def test_a_test_asks_for_the_list_and_a_few_words_and_stores_nothing(
    chat: Chat, door: Door, page: ModelServer
) -> None:
    page.models = ModelList(ids=("text-embedding-3", "first", "second"))

    found = await tried(door, page.url, sealed_key=await sealed(door, KEY))
    named = await tried(door, page.url, sealed_key=await sealed(door, KEY), model="second")
    view = await door.ask(GetModelConnection())

    assert (found.ok, found.class_, found.answered_by) == (True, "ok", "first")
    assert found.models == ["text-embedding-3", "first", "second"]
    assert found.latency_ms is not None
    assert named.answered_by == "second"
    assert page.requests[0].body["max_tokens"] <= 16
    assert (view.source, view.url) == ("none", None)


async def test_the_stored_key_is_sent_to_its_own_server_alone(chat: Chat, door: Door, page: ModelServer) -> None:
    await save(door, page.url, key=KEY)
    with ModelServer() as other:
        own = await tried(door, page.url)
        foreign = await tried(door, other.url)
        none = await tried(door, page.url, sealed_key=None)

    assert (own.ok, foreign.ok) == (True, True)
    assert not any("authorization" in entry.headers for entry in other.log)
    assert (none.class_, "wants a key" in none.sentence) == ("unauthorized", True)


async def test_a_key_is_kept_out_of_logs_unless_it_is_a_mere_word(chat: Chat, door: Door, page: ModelServer) -> None:
    page.key = None
    for key in ("a-heron", "of-a-person-3c5e", "a-stork"):
        await tried(door, page.url, sealed_key=await sealed(door, key))
    await save(door, page.url, key="a-crane")
    await door.say("hello", new_id())

    assert redact("a-heron, a-stork and a-crane") == "a-heron, a-stork and a-crane"
    assert redact("of-a-person-3c5e") == "[redacted:model key]"


async def test_servers_are_detected_by_an_answer_and_ports_of_ours_are_left_alone(
    chat: Chat, door: Door, page: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as other:
        other.models = ModelList(ids=("llama",), fields={"owned_by": "library"})
        known = {page.port: "Keyed", other.port: "Other", 1: "Nobody"}
        monkeypatch.setattr("popagent_models.well_known.PORTS", known)

        found = await door.ask(DetectModelServers())
        asked = len(other.log)
        rest = await door.ask(DetectModelServers(own_ports=[other.port]))

    assert [(each.name, each.url, each.models, each.needs_key) for each in found.items] == [
        ("Keyed", page.url, [], True),
        ("Ollama", other.url, ["llama"], False),
    ]
    assert [each.name for each in rest.items] == ["Keyed"]
    assert len(other.log) == asked
    assert (await door.ask(GetModelConnection())).source == "none"


async def test_health_tells_which_model_answers_and_never_waits_for_it(
    chat: Chat, door: Door, page: ModelServer
) -> None:
    none = await chat.service.health.view()
    await save(door, page.url, key=KEY)
    page.models = ModelList(delay_s=2.0)
    chat.service.health.move_to("ok")

    await door.ask(ListModels())
    well = await chat.service.health.view()

    assert "No model is connected" in none.checks["model"]
    assert (well.checks["model"], well.ready) == ("ok", True)
    assert well.details["model"] == f"scripted-model, at 127.0.0.1:{page.port}"


async def test_four_tests_at_a_time_and_no_more(chat: Chat, door: Door, page: ModelServer) -> None:
    page.key = None
    page.models = ModelList(delay_s=30)
    waiting = [asyncio.create_task(tried(door, page.url)) for _ in range(4)]
    await page.until(lambda server: len(server.log) == 4)

    error = await refusal(tried(door, page.url, sealed_key=await sealed(door, "of-one-who-came-too-late")))
    page.drop_connections()
    found = await asyncio.gather(*waiting)

    assert error.http_status == 429
    assert redact("of-one-who-came-too-late") == "of-one-who-came-too-late"
    assert {each.ok for each in found} == {False}
