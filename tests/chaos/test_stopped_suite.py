"""The suite told to stop while a turn runs: its watchers see how the turn ends, and nothing of its text is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply
from tests.chaos.test_killed_services import HALF, read_until
from tests.suite import Suite

pytestmark = pytest.mark.timeout(180)


async def test_who_watches_a_turn_at_the_stop_sees_it_end_interrupted(tmp_path: Path) -> None:
    session = new_id()
    with Suite(tmp_path, env={"POPAGENT_TURN_STOP_GRACE_S": "0"}) as suite:
        suite.model.script(Reply(text=HALF, after=5, hold=True))
        async with suite.talk() as talk, talk.open_chat("count", session) as stream:
            await read_until(stream, "five")

            stopping = asyncio.create_task(asyncio.to_thread(suite.stop_programs))
            answer = await stream.read()
            await stopping

    assert answer.done
    assert not answer.resumable  # the turn's own end, not the door's
    assert answer.ending is not None
    assert answer.ending["type"] == "error"
    assert answer.message["metadata"]["state"] == "interrupted"
