"""The life of a turn: how it ends, what it says meanwhile, and what stays of it."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.messages import FAILURE, MessageMetadata
from popagent_proto.chat.turns import SnapshotTurn, StopTurn
from popagent_telemetry import current_trace_id, span
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from popagent_tools.catalogue import CATALOGUE
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, Watched

READ_README = ScriptedCall("read", '{"path": "README.md"}')


@pytest.fixture
async def seeds(pool: Pool) -> AsyncIterator[None]:
    """Undo what a test does to profile and settings."""
    await pool.execute("create table if not exists kept_agents as table agents")
    yield
    await pool.execute("delete from agents")
    await pool.execute("insert into agents table kept_agents")
    await pool.execute("update agent_runtime_settings set supervisor_max_steps = 32")


async def row_of(pool: Pool, turn: Watched) -> dict[str, Any]:
    return dict((await pool.fetch("select * from turns where id = $1", turn.view.turn_id))[0])


async def events_of(pool: Pool, *aggregates: str) -> list[tuple[str, int]]:
    """Subject's slice-verb and version of the outbox rows, in order."""
    rows = await pool.fetch(
        "select split_part(subject, '.', 4) as name, (payload::jsonb->>'version')::int as version from outbox "
        "where aggregate_id = any($1) order by position",
        list(aggregates),
    )
    return [(row["name"], row["version"]) for row in rows]


async def settled(pool: Pool, turn: Watched, state: str) -> dict[str, Any]:
    """Check what holds after every turn, whatever its end, and return the stored answer."""
    row = await row_of(pool, turn)
    assert row["state"] == state
    assert (row["owner"], row["lease_until"], row["checkpoint"]) == (None, None, None)
    assert row["ending"] == turn.ending
    assert row["next_chunk"] == len(turn.chunks)
    session = turn.view.session_id
    answers = await pool.fetch("select * from messages where thread_id = $1 and role = 'assistant'", session)
    assert [answer["id"] for answer in answers] == [turn.view.message_id]
    assert answers[0]["parent_id"] == row["user_message_id"]
    assert answers[0]["parts"] == turn.message["parts"]
    assert answers[0]["metadata"] == turn.message["metadata"]
    assert turn.message["id"] == turn.view.message_id
    assert await pool.fetchval("select running_turn_id from sessions where id = $1", session) is None
    started_and_ended = await events_of(pool, turn.view.turn_id)
    assert started_and_ended == [("turns-started", 0), ("turns-ended", 1)]
    versions = [version for _, version in await events_of(pool, session)]
    assert versions == sorted(set(versions))
    metadata: dict[str, Any] = turn.message["metadata"]
    assert (metadata["turnId"], metadata["state"]) == (turn.view.turn_id, state)
    assert metadata["durationMs"] >= 0
    declared = MessageMetadata.model_validate(metadata)
    assert declared.model_dump(mode="json", by_alias=True, exclude_unset=True) == metadata
    said = [part["text"] for part in turn.message["parts"] if part.get("providerMetadata") == FAILURE]
    assert said == ([metadata["error"]["text"]] if state == "failed" else [])
    assert ("error" in metadata) is (state in {"failed", "interrupted"})
    return metadata


async def usable(door: Door, model: ModelServer, session: str) -> None:
    """The session answers the next question."""
    model.reset()
    assert (await door.say("and now?", session)).text == "and now?"


async def test_a_completed_turn_reads_a_file_and_says_how_it_went(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(Reply(tool_calls=(READ_README,), reasoning="Let me look."), Reply(text="The word is heron."))

    with span("a request of the gateway"):
        trace = current_trace_id()
        turn = await door.say("What is the word of the day?", session)

    metadata = await settled(pool, turn, "completed")
    kinds = [part["type"] for part in turn.message["parts"]]
    assert kinds == ["step-start", "reasoning", "tool-read", "step-start", "text"]
    assert "heron" in turn.message["parts"][2]["output"]
    assert turn.message["parts"][2]["toolMetadata"]["durationMs"] >= 0
    assert metadata["model"] == "scripted-model"
    assert metadata["usage"]["inputTokens"] > 0
    assert metadata["traceId"] == trace
    assert (await door.stored(session))[1] == turn.message
    usage = await pool.fetch("select * from model_usage where turn_id = $1 order by created_at", turn.view.turn_id)
    assert [(row["finish_reason"], row["error_class"]) for row in usage] == [("tool-calls", None), ("stop", None)]
    assert {(row["trace_id"], row["agent_id"], row["source"]) for row in usage} == {(trace, "orchistrator", "default")}
    stored = await row_of(pool, turn)
    assert stored["input_tokens"] == sum(row["input_tokens"] for row in usage) == metadata["usage"]["inputTokens"]


@pytest.mark.usefixtures("seeds")
async def test_an_agent_without_a_workspace_answers_and_its_file_tools_say_why_not(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("update agents set workspace_access = 'none'")
    model.script(Reply(tool_calls=(READ_README,)), Reply(text="There are no files."))

    turn = await door.say("read", new_id())

    await settled(pool, turn, "completed")
    assert "no workspace in this conversation" in turn.message["parts"][1]["errorText"]


@pytest.mark.usefixtures("seeds")
async def test_an_edited_profile_and_edited_settings_hold_from_the_next_turn_on(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("update agents set instructions = 'Speak like a heron.', tools = '{list}', revision = 1")
    await pool.execute("update agent_runtime_settings set supervisor_max_steps = 2")
    model.default = Reply(tool_calls=(ScriptedCall("list", '{"path": "."}'),), text="again")

    turn = await door.say("go", new_id())

    request = model.requests[0].body
    assert request["messages"][0]["content"].startswith("Speak like a heron.")
    tools = [tool["function"]["name"] for tool in request["tools"]]
    assert [name for name in tools if not name.startswith("agent-")] == ["list", "agentCommunication"]
    assert len(model.requests) == 2
    assert (await settled(pool, turn, "completed"))["budgetExhausted"]


@pytest.mark.usefixtures("seeds")
@pytest.mark.parametrize(
    ("seeded", "used", "source"), [(True, "scripted-model", "default"), (False, "preset-model", "agent")]
)
async def test_a_preset_model_that_is_not_offered_is_passed_over_unless_somebody_chose_it(
    seeded: bool, used: str, source: str, chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("update agents set model_override = 'preset-model', override_is_seeded = $1", seeded)

    turn = await door.say("hello", new_id())

    assert model.requests[-1].body["model"] == used
    routed = await pool.fetch("select route_model, source from model_usage where turn_id = $1", turn.view.turn_id)
    assert [tuple(row) for row in routed] == [(used, source)]


async def test_the_workspace_s_folder_is_closed_however_a_turn_ends(
    chat: Chat, door: Door, model: ModelServer, root: Path
) -> None:
    def open_folders() -> int:
        links = (Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd"))
        return sum(str(root) in os.readlink(link) for link in links if link.is_symlink())

    model.script(
        Reply(tool_calls=(READ_README,)),
        Reply(text="read"),
        Reply(status=401),
        Reply(text="one two", after=1, hold=True),
        Reply(text="one two", after=1, hold=True),
    )
    await door.say("completed", new_id())
    await door.say("failed", new_id())
    stopped, interrupted = await door.start("stopped", new_id()), await door.start("interrupted", new_id())
    await model.until(lambda server: server.held == 2)

    assert open_folders() == 2
    await door.ask(StopTurn(session_id=stopped.view.session_id))
    await stopped.read()
    await chat.stop()
    await interrupted.read()

    assert open_folders() == 0


async def test_the_span_of_a_turn_says_how_it_ended(
    chat: Chat, door: Door, model: ModelServer, ended_spans: list[ReadableSpan]
) -> None:
    model.script(
        Reply(text="read"),
        Reply(status=401),
        Reply(text="one two", after=1, hold=True),
        Reply(text="one two", after=1, hold=True),
    )
    await door.say("completed", "completed")
    await door.say("failed", "failed")
    stopped, interrupted = await door.start("stopped", "stopped"), await door.start("interrupted", "interrupted")
    await model.until(lambda server: server.held == 2)
    await door.ask(StopTurn(session_id="stopped"))
    await stopped.read()
    await chat.stop()
    await interrupted.read()

    turns = [dict(span.attributes or {}) for span in ended_spans if span.name == "chat.turn"]
    told = {each["popagent.session.id"]: each["popagent.turn.state"] for each in turns}
    assert told == {name: name for name in ("completed", "failed", "stopped", "interrupted")}


async def test_a_stopped_turn_keeps_what_it_had_said(chat: Chat, door: Door, model: ModelServer, pool: Pool) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")

    view = await door.ask(StopTurn(session_id=session))
    await turn.read()

    assert view.turn_id == turn.view.turn_id
    assert (turn.ending["type"], turn.text) == ("abort", "one two")
    await settled(pool, turn, "stopped")
    await model.until(lambda server: server.requests[0].outcome == "client-left")
    assert await pool.fetchval("select error_class from model_usage where turn_id = $1", view.turn_id) == "stopped"
    await usable(door, model, session)


async def test_a_turn_is_stopped_before_its_first_token(chat: Chat, door: Door, model: ModelServer, pool: Pool) -> None:
    session = new_id()
    model.script(Reply(header_delay_s=30))
    turn = await door.start("count", session)
    await model.until(lambda server: bool(server.requests))

    await door.ask(StopTurn(session_id=session))
    await turn.read()

    assert (turn.ending["type"], turn.text) == ("abort", "")
    await settled(pool, turn, "stopped")
    await usable(door, model, session)


async def test_a_turn_is_stopped_while_a_tool_works(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered = asyncio.Event()

    async def waits(run: object, path: str, line: int = 1) -> str:
        entered.set()
        await asyncio.sleep(60)
        return ""

    monkeypatch.setitem(CATALOGUE, "read", dataclasses.replace(CATALOGUE["read"], function=waits))
    session = new_id()
    model.script(Reply(tool_calls=(READ_README,)))
    turn = await door.start("read", session)
    await asyncio.wait_for(entered.wait(), 5)

    await door.ask(StopTurn(session_id=session))
    await turn.read()

    await settled(pool, turn, "stopped")
    assert turn.message["parts"][1]["state"] == "output-error"
    await usable(door, model, session)


async def test_the_snapshot_of_an_ended_turn_ends_as_its_stream_did(chat: Chat, door: Door) -> None:
    session = new_id()
    turn = await door.say("hello", session)

    snapshot = await door.ask(SnapshotTurn(session_id=session, turn_id=turn.view.turn_id))

    assert snapshot.state == "completed"
    assert snapshot.sse.endswith("data: [DONE]\n\n")


async def test_stopping_when_nothing_runs_is_said(chat: Chat, door: Door) -> None:
    session = new_id()
    await door.say("hello", session)

    for message in (StopTurn(session_id=session), StopTurn(session_id=new_id()), SnapshotTurn(session_id=session)):
        with pytest.raises(AppError) as refused:
            await door.ask(message)
        assert (refused.value.http_status, refused.value.code) == (404, "nothing_runs")


@pytest.mark.parametrize(
    ("reply", "said", "sentence"),
    [
        (Reply(text="one two three", after=2, fault="cut"), "one", "cut off"),
        (Reply(text="one two three", after=2, fault="no-finish"), "one", "model"),
        (Reply(text="one two three", after=2, fault="error-event"), "one", "broke off"),
        (Reply(text="one two three", fault="lying-length"), "", "model"),
        (Reply(status=500, times=0), "", "failed (status 500)"),
        (Reply(status=401), "", "refuses the key"),
        (Reply(fault="empty", times=0), "", "model"),
        (Reply(fault="all-malformed", times=0), "", "model"),
    ],
    ids=lambda value: value.fault or str(value.status) if isinstance(value, Reply) else "",
)
async def test_a_model_that_fails_is_a_plain_sentence_and_the_text_before_it_stays(
    reply: Reply, said: str, sentence: str, chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(reply)

    turn = await door.say("count", session)

    metadata = await settled(pool, turn, "failed")
    assert turn.ending["type"] == "error"
    assert said in turn.text
    assert sentence in turn.text
    assert "scripted failure" not in str(turn.chunks)
    assert metadata["error"]["class"] in {"provider", "configuration", "timeout"}
    assert await pool.fetchval("select error_class from turns where id = $1", turn.view.turn_id)
    assert (await door.stored(session))[1] == turn.message
    await usable(door, model, session)


async def test_a_model_that_falls_silent_is_a_plain_sentence(
    door: Door, model: ModelServer, pool: Pool, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_MODEL_IDLE_TIMEOUT_S", "0.3")
    await start()
    session = new_id()
    model.script(Reply(text="one two", after=2, fault="stall"))

    turn = await door.say("count", session)

    await settled(pool, turn, "failed")
    assert "one" in turn.text
    assert "fell silent" in turn.text


async def test_no_model_at_all_is_a_plain_sentence(
    door: Door, model: ModelServer, pool: Pool, start: StartChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POPAGENT_MODEL_URL")
    await start()
    session = new_id()

    turn = await door.say("hello", session)

    await settled(pool, turn, "failed")
    assert "POPAGENT_MODEL_URL" in turn.text


async def test_a_missing_workspace_folder_is_a_plain_sentence(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, root: Any
) -> None:
    (root / "default" / "README.md").unlink()
    (root / "default").rmdir()
    session = new_id()

    turn = await door.say("hello", session)

    (root / "default").mkdir()
    metadata = await settled(pool, turn, "failed")
    assert [chunk["type"] for chunk in turn.chunks][:2] == ["start", "start-step"]
    assert "no directory default below the workspace root" in turn.text
    assert metadata["error"]["text"] in turn.text
    await usable(door, model, session)


async def test_what_breaks_on_our_side_ends_the_turn_without_its_inner_words(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    await pool.execute("alter table agents rename column tools to tols")

    turn = await door.say("hello", session)

    await pool.execute("alter table agents rename column tols to tools")
    assert (await settled(pool, turn, "failed"))["error"]["class"] == "internal"
    assert "Something went wrong on our side" in turn.text
    assert "tols" not in str(turn.chunks)
    await usable(door, model, session)


async def test_at_a_stop_of_the_service_running_turns_end_interrupted_with_their_text(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, start: StartChat
) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")

    await chat.stop()
    await turn.read()

    assert (turn.ending["type"], turn.text) == ("error", "one two")
    metadata = await settled(pool, turn, "interrupted")
    assert metadata["model"] == "scripted-model"
    await start()
    await usable(door, model, session)


async def test_a_turn_interrupted_before_its_first_chunk_begins_and_ends_in_legal_order(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    lock = await chat.pool.connect()
    await lock.execute("begin; lock table agents in access exclusive mode")
    turn = await door.start("hello", new_id())

    await chat.stop()
    await lock.close()
    await turn.read()

    assert [chunk["type"] for chunk in turn.chunks] == [
        "start",
        "start-step",
        "finish-step",
        "message-metadata",
        "message-metadata",
        "error",
    ]
    await settled(pool, turn, "interrupted")


async def test_turns_that_end_within_the_grace_are_not_interrupted(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, start: StartChat
) -> None:
    await chat.stop()
    patient = await start(stop_grace_s=10)
    model.script(Reply(text="one two three", after=1, hold=True))
    turn = await door.start("count", new_id())
    await model.until(lambda server: server.held == 1)

    stopping = asyncio.create_task(patient.stop())
    await until(lambda: not patient.deps.turns.reserve())
    model.release()
    await asyncio.gather(stopping, turn.read())

    assert turn.text == "one two three"
    await settled(pool, turn, "completed")


async def test_events_carry_the_session_and_the_beginning_of_the_answer(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(Reply(text="word " * 4_000, chunks=3))

    turn = await door.say("write", session)

    payload = await pool.fetchval(
        "select payload::jsonb from outbox where aggregate_id = $1 and subject like '%turns-ended%'", turn.view.turn_id
    )
    assert payload["state"] == "completed"
    assert payload["session"]["id"] == session
    assert payload["session"]["runningTurnId"] is None
    assert (len(payload["excerpt"]), payload["excerpt"][:9]) == (8_000, "word word")
    await until(lambda: _all_sent(pool))


async def _all_sent(pool: Pool) -> bool:
    return bool(await pool.fetchval("select not exists (select from outbox where sent_at is null)"))
