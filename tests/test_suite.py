from __future__ import annotations

import signal

from popagent_testing.model_replies import Reply
from tests.suite import SERVICES, Suite
from tests.talk import Talk, message_hash


async def test_the_suite_answers_over_all_of_its_services(suite: Suite, talk: Talk) -> None:
    suite.model.set_default(Reply(text="It measures wind and rain."))

    answer = await talk.chat("What is this?", "first-session")

    assert answer.text == "It measures wind and rain."
    assert answer.done
    assert message_hash(answer.message) == message_hash((await talk.messages("first-session"))[-1])
    assert {name for name in SERVICES if suite.program(name).state != "ready"} == set()


async def test_joining_where_nothing_runs_is_no_content(suite: Suite, talk: Talk) -> None:
    suite.model.set_default(Reply(text="Done."))
    await talk.chat("Hello", "session-that-ended")

    ended, unknown = await talk.join("session-that-ended"), await talk.join("no-such-session")

    assert (ended.status, unknown.status) == (204, 204)


async def test_a_second_gateway_serves_the_same_sessions_and_a_killed_one_comes_back(suite: Suite, talk: Talk) -> None:
    suite.model.set_default(Reply(text="The same everywhere."))
    second = suite.another("gateway")
    await suite.until(second.ready, "the second gateway is ready")

    async with suite.talk(second.base_url) as other:
        answer = await other.chat("Hello", "shared-session")
    await suite.restart("gateway", signal.SIGKILL)
    stored = (await talk.messages("shared-session"))[-1]
    second.end()

    assert message_hash(answer.message) == message_hash(stored)
