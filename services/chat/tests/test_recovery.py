"""Turns whose owner is gone: what they had said is kept, watchers get an end, and nothing ends twice."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace import ReadableSpan

from popagent_bus import Bus
from popagent_bus.live import LivePublisher
from popagent_chat.turns import recovery
from popagent_chat.turns.closing import BROKEN, INTERRUPTED
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import CreateSession, CreateSessionBody
from popagent_testing.model_server import ModelServer, Reply
from popagent_testing.streams import random_stream
from popagent_testing.suite_bus import ConnectAs, until
from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk
from popagent_uistream.encode import encode_all
from popagent_uistream.reducer import MessageReducer
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, Watched, live_subject
from services.chat.tests.test_turns import settled, usable


class Abandoned:
    """A turn as a killed process leaves it: rows, a checkpoint perhaps, frames perhaps."""

    def __init__(self, pool: Pool, bus: Bus) -> None:
        self.pool = pool
        self.bus = bus
        self.session = new_id()
        self.turn_id = new_id()
        self.answer_id = new_id()

    async def store(self, door: Door, *, checkpoint: dict[str, Any] | None = None, next_chunk: int = 0) -> None:
        await door.ask(CreateSession(command_id=self.session, body=CreateSessionBody()))
        async with self.pool.transaction() as conn:
            await conn.execute(
                "insert into messages (thread_id, id, seq, role, parts, metadata, token_count) "
                "values ($1, 'question', 0, 'user', $2, '{}', 1)",
                self.session,
                [{"type": "text", "text": "a question"}],
            )
            await conn.execute("update threads set head_id = 'question' where id = $1", self.session)
            await conn.execute("update sessions set running_turn_id = $2 where id = $1", self.session, self.turn_id)
            await conn.execute(
                "insert into turns (id, session_id, user_message_id, assistant_message_id, state, attempt, owner, "
                "boot_id, lease_until, trace_headers, checkpoint, next_chunk) "
                "values ($1, $2, 'question', $3, 'running', 1, $4, $4, "
                "clock_timestamp() + interval '1 minute', '{}', $5, $6)",
                self.turn_id,
                self.session,
                self.answer_id,
                uuid.uuid4(),
                checkpoint,
                next_chunk,
            )

    def publish(self, said: list[Chunk], first: int = 0) -> None:
        publisher = LivePublisher(self.bus, live_subject(self.turn_id), coalesce_s=0)
        publisher.send(first, len(said), encode_all(said))
        publisher.close()

    async def expire(self, attempt: int = 1) -> None:
        await self.bus.flush()
        await self.pool.execute(
            "update turns set lease_until = clock_timestamp(), attempt = $2 where id = $1", self.turn_id, attempt
        )


@pytest.fixture
async def abandoned(chat: Chat, pool: Pool, connect_as: ConnectAs) -> Abandoned:
    return Abandoned(pool, await connect_as("chat"))


def opened(message_id: str, turn_id: str, *texts: str) -> list[Chunk]:
    return [
        chunks.start(message_id=message_id, message_metadata={"turnId": turn_id}),
        chunks.start_step(),
        chunks.text_start("t"),
        *(chunks.text_delta("t", text) for text in texts),
    ]


async def state_of(pool: Pool, turn_id: str) -> str:
    return str(await pool.fetchval("select state from turns where id = $1", turn_id))


async def taken_over(pool: Pool, turn: Watched) -> None:
    """Give the turn to an owner that is gone, as if its process had slept for longer than the lease."""
    await pool.execute(
        "update turns set attempt = attempt + 1, owner = gen_random_uuid(), lease_until = clock_timestamp() "
        "where id = $1",
        turn.view.turn_id,
    )


async def test_what_a_lost_turn_had_said_is_stored_and_its_watchers_get_an_end(
    door: Door, abandoned: Abandoned, model: ModelServer, ended_spans: list[ReadableSpan]
) -> None:
    await abandoned.store(door)
    said = opened(abandoned.answer_id, abandoned.turn_id, "one ", "two ", "three")
    abandoned.publish(said)
    watched = await door.join(abandoned.session)
    await watched.read(until="three")

    await abandoned.expire()
    await watched.read()

    assert watched.ending == {"type": "error", "errorText": INTERRUPTED}
    assert watched.text == "one two three"
    stored = (await door.stored(abandoned.session))[1]
    assert stored == watched.message
    assert stored["metadata"]["state"] == "interrupted"
    assert stored["metadata"]["endReason"] == "interrupted"
    assert (await door.join(abandoned.session, abandoned.turn_id)).ending == watched.ending
    assert model.requests == []
    [told] = [dict(span.attributes or {}) for span in ended_spans if span.name == "chat.turn.recover"]
    assert (told["popagent.turn.id"], told["popagent.turn.state"]) == (abandoned.turn_id, "interrupted")
    await usable(door, model, abandoned.session)


async def test_the_work_of_a_lost_specialist_is_stored_with_nothing_running(door: Door, abandoned: Abandoned) -> None:
    await abandoned.store(door)
    entries = {
        "1": {"step": 1, "kind": "call", "tool": "read", "input": "{}", "state": "done"},
        "2": {"step": 1, "kind": "call", "tool": "shell", "input": "{}", "state": "running"},
    }
    activity = {"agentId": "implementer", "state": "running", "entries": entries}
    said = [
        *opened(abandoned.answer_id, abandoned.turn_id, "I ask."),
        chunks.text_end("t"),
        chunks.tool_input_start("call", "agent-implementer"),
        chunks.tool_input_available("call", "agent-implementer", {"prompt": "Run the tests."}),
        chunks.data("agentActivity", activity, data_id="call", transient=True),
    ]
    abandoned.publish(said)
    watched = await door.join(abandoned.session)
    await watched.read(until="I ask.")

    await abandoned.expire()
    await watched.read()

    stored = (await door.stored(abandoned.session))[1]
    [ended] = [part["data"] for part in stored["parts"] if part["type"] == "data-agentActivity"]
    assert ended["state"] == "stopped"
    assert [entry["state"] for entry in ended["entries"].values()] == ["done", "failed"]


@pytest.mark.parametrize("seed", range(8))
async def test_checkpoint_and_frames_cut_anywhere_give_exactly_what_watchers_saw(
    seed: int, door: Door, abandoned: Abandoned, pool: Pool
) -> None:
    dice = random.Random(seed)
    said = [chunks.start(message_id=abandoned.answer_id), *random_stream(dice, moves=60)[1:-1]]
    said = said[: dice.randint(3, len(said))]
    saved = dice.randint(0, len(said))
    reducer = MessageReducer(store_transient=("data-agentActivity",))
    reducer.apply_all(said[:saved])
    checkpoint = orjson.loads(orjson.dumps(reducer.message)) if saved else None
    await abandoned.store(door, checkpoint=checkpoint, next_chunk=saved)
    for first in range(0, len(said), 7):
        abandoned.publish(said[first : first + 7], first)
    await abandoned.bus.flush()
    early, late = await door.join(abandoned.session), await door.join(abandoned.session)
    early_reader = await door.join(abandoned.session)

    await abandoned.expire()
    await asyncio.gather(early.read(), late.read(), early_reader.read())

    whole = MessageReducer(store_transient=("data-agentActivity",))
    whole.apply_all(said)
    stored = (await door.stored(abandoned.session))[1]
    texts = [part["text"] for part in stored["parts"] if part["type"] == "text"]
    assert texts == [part["text"] for part in whole.message["parts"] if part["type"] == "text"]
    assert len(stored["parts"]) >= len(whole.message["parts"])
    assert early.message["parts"] == late.message["parts"]
    assert early.ending == late.ending == {"type": "error", "errorText": INTERRUPTED}
    assert await state_of(pool, abandoned.turn_id) == "interrupted"


async def test_after_the_live_stream_is_gone_the_checkpoint_is_what_is_stored(door: Door, abandoned: Abandoned) -> None:
    said = opened(abandoned.answer_id, abandoned.turn_id, "one ", "two ", "three")
    message = MessageReducer().apply_all(said[:5])
    await abandoned.store(door, checkpoint=orjson.loads(orjson.dumps(message)), next_chunk=5)

    await abandoned.expire()
    watched = await (await door.join(abandoned.session, abandoned.turn_id)).read()

    assert watched.text == "one two "
    assert (await door.stored(abandoned.session))[1] == watched.message


async def test_frames_that_cannot_be_read_end_the_answer_where_they_begin(
    door: Door, abandoned: Abandoned, pool: Pool
) -> None:
    await abandoned.store(door)
    abandoned.publish(opened(abandoned.answer_id, abandoned.turn_id, "one"))
    publisher = LivePublisher(abandoned.bus, live_subject(abandoned.turn_id), coalesce_s=0)
    publisher.send(4, 1, b"data: {broken\n\n")
    publisher.close()

    await abandoned.expire()
    await until(lambda: _ended(pool, abandoned.turn_id))

    stored = (await door.stored(abandoned.session))[1]
    assert stored["parts"][1]["text"] == "one"
    assert await state_of(pool, abandoned.turn_id) == "interrupted"


async def test_a_turn_that_had_said_nothing_is_run_again(door: Door, abandoned: Abandoned, model: ModelServer) -> None:
    await abandoned.store(door)
    watched = await door.join(abandoned.session)

    await abandoned.expire()
    await watched.read()

    assert (watched.ending["type"], watched.text) == ("finish", "a question")
    assert (await door.stored(abandoned.session))[1] == watched.message
    assert len(model.requests) == 1


async def test_a_turn_that_had_only_begun_is_run_again_in_the_same_stream(
    door: Door, abandoned: Abandoned, model: ModelServer
) -> None:
    await abandoned.store(door)
    abandoned.publish(opened(abandoned.answer_id, abandoned.turn_id)[:2])
    watched = await door.join(abandoned.session)

    await abandoned.expire()
    await watched.read()

    assert (watched.ending["type"], watched.text) == ("finish", "a question")
    assert [chunk["type"] for chunk in watched.chunks].count("start") == 1
    assert (await door.stored(abandoned.session))[1] == watched.message


async def test_a_turn_that_may_have_done_something_is_not_run_again(
    door: Door, abandoned: Abandoned, model: ModelServer, pool: Pool
) -> None:
    await abandoned.store(door)
    await pool.execute("insert into turn_intents values ($1, 1, 1, 'c', 'write', '{}')", abandoned.turn_id)

    await abandoned.expire()
    watched = await (await door.join(abandoned.session, abandoned.turn_id)).read()

    assert watched.ending == {"type": "error", "errorText": INTERRUPTED}
    assert model.requests == []
    assert (await door.stored(abandoned.session))[1] == watched.message


async def test_a_turn_that_nobody_can_carry_out_is_ended_with_a_sentence(
    door: Door, abandoned: Abandoned, model: ModelServer, pool: Pool
) -> None:
    await abandoned.store(door)
    said = opened(abandoned.answer_id, abandoned.turn_id, "one")
    message = MessageReducer().apply_all(said)
    await pool.execute(
        "update turns set checkpoint = $2, next_chunk = 4 where id = $1",
        abandoned.turn_id,
        orjson.loads(orjson.dumps(message)),
    )

    await abandoned.expire(attempt=recovery.MOST_ATTEMPTS)
    await until(lambda: _ended(pool, abandoned.turn_id))

    stored = (await door.stored(abandoned.session))[1]
    assert [part.get("text") for part in stored["parts"]] == [None, BROKEN]
    assert stored["metadata"]["turnId"] == abandoned.turn_id
    assert await state_of(pool, abandoned.turn_id) == "failed"
    assert model.requests == []
    await usable(door, model, abandoned.session)


async def _ended(pool: Pool, turn_id: str) -> bool:
    return await state_of(pool, turn_id) not in {"queued", "running"}


async def test_a_turn_whose_end_cannot_be_stored_is_given_up_after_some_attempts(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.execute("alter table messages add constraint no_herons check (parts::text not like '%heron%')")
    monkeypatch.setattr(recovery, "MOST_ATTEMPTS", 1)
    model.script(Reply(text="a heron"))
    session = new_id()

    turn = await door.say("which bird?", session)

    await pool.execute("alter table messages drop constraint no_herons")
    assert turn.ending == {"type": "error", "errorText": BROKEN}
    assert len(model.requests) == 1
    assert (await door.stored(session))[1]["parts"][1]["text"] == BROKEN
    await usable(door, model, session)


async def test_a_turn_that_was_taken_over_ends_once_and_its_former_owner_writes_nothing_more(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")

    await taken_over(pool, turn)
    chat.deps.turns.wake()
    await turn.read()

    assert turn.ending == {"type": "error", "errorText": INTERRUPTED}
    await settled(pool, turn, "interrupted")
    await model.until(lambda server: server.requests[0].outcome == "client-left")
    assert (await door.stored(session))[1] == turn.message
    await usable(door, model, session)


async def test_an_owner_whose_turn_ended_elsewhere_while_it_wrote_the_end_stores_no_second_one(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, start: StartChat
) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=2, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="two")
    blocker = await pool.connect()
    await blocker.execute("begin")
    await blocker.execute("select from turns where id = $1 for update".replace("$1", f"'{turn.view.turn_id}'"))

    model.release()
    await until(lambda: _waits_for_a_lock(pool))
    await blocker.execute(
        "update turns set attempt = attempt + 1, owner = gen_random_uuid(), lease_until = clock_timestamp() "
        f"where id = '{turn.view.turn_id}'"
    )
    await blocker.execute("commit")
    await blocker.close()
    await turn.read()

    assert turn.ending["type"] == "error"
    await settled(pool, turn, "interrupted")


async def _waits_for_a_lock(pool: Pool) -> bool:
    return bool(
        await pool.fetchval(
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
    )


async def test_a_late_joiner_of_a_running_turn_sees_the_same_message_at_every_moment(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    text = " ".join(f"w{number}" for number in range(250))
    model.script(Reply(text=text, token_delay_s=0.01))
    first = await door.start("write", session)
    joined: list[Watched] = []

    async def join_later() -> None:
        for moment in (0.05, 0.4, 1.0, 0.3, 0.3):
            await asyncio.sleep(moment)
            joined.append(await door.join(session, first.view.turn_id))

    await asyncio.gather(first.read(), join_later())
    await asyncio.gather(*(watched.read() for watched in joined if not watched.order.ended))

    assert await pool.fetchval("select next_chunk from turns where id = $1", first.view.turn_id) == len(first.chunks)
    assert first.text == text
    assert [watched.message for watched in joined] == [first.message] * 5


async def test_a_checkpoint_is_stored_though_the_model_fell_silent_behind_quiet_chunks(
    chat: Chat, door: Door, model: ModelServer, pool: Pool
) -> None:
    session = new_id()
    model.script(Reply(text="one two three", after=1, hold=True))
    turn = await door.start("count", session)
    await turn.read(until="one")

    async def saved() -> bool:
        checkpoint = await pool.fetchval("select checkpoint from turns where id = $1", turn.view.turn_id)
        return checkpoint is not None and checkpoint["parts"][-1].get("text") == "one"

    await until(saved, timeout_s=3)
    model.release()
    await turn.read()
