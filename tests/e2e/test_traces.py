"""One turn is one tree over door, chat, model and tools, to be seen while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, ScriptedCall
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(180)

Trace = dict[str, Any]


async def trace_of(talk: Talk, session: str, as_wanted: Callable[[Trace], bool]) -> Trace:
    """Wait for the one trace of the session's turn until it is as wanted."""
    async with asyncio.timeout(60):
        while True:
            listed = await talk.http.get(f"/api/observability/traces?sessionId={session}")
            assert listed.status_code in {200, 503, 504}  # a suite is up before its observability
            if listed.status_code == 200 and listed.json()["items"]:
                [found] = listed.json()["items"]
                trace: Trace = await talk.json("GET", f"/api/observability/traces/{found['traceId']}")
                if as_wanted(trace):
                    return trace
            await asyncio.sleep(0.05)


def model_calls(trace: Trace) -> list[str]:
    return [span["status"] for span in trace["spans"] if "scripted-model" in span["name"]]


async def test_a_turn_is_one_tree_over_door_chat_model_and_tools_also_while_it_runs(suite: Suite, talk: Talk) -> None:
    session = new_id()
    suite.model.script(
        Reply(tool_calls=(ScriptedCall("list", '{"path": "."}'),)), Reply(text="one two three", hold=True, after=1)
    )
    async with talk.open_chat("What is here?", session) as stream:
        async for _ in stream:
            if "one" in stream.answer.text:
                break

        running = await trace_of(talk, session, lambda trace: "running" in model_calls(trace))
        suite.model.release()
        answer = await stream.read()
    ended = await trace_of(talk, session, lambda trace: trace["status"] == "ok")

    assert (running["status"], model_calls(running)) == ("running", ["ok", "running"])
    assert (ended["traceId"], model_calls(ended)) == (running["traceId"], ["ok", "ok"])
    assert answer.message["metadata"]["traceId"] == ended["traceId"]
    spans = {span["spanId"]: span for span in ended["spans"]}
    assert [span["name"] for span in spans.values() if span["parentId"] not in spans] == ["POST /api/chat"]
    [tool] = [span for span in spans.values() if span["name"].endswith(" list")]
    above = [span["service"] for span in lineage(tool, spans)]
    assert above == ["chat"] * (len(above) - 2) + ["gateway"] * 2
    assert {span["service"] for span in spans.values()} == {"gateway", "chat"}
    assert ended["sessionId"] == session


def lineage(span: Trace, spans: dict[str, Trace]) -> list[Trace]:
    """Return the span and all above it."""
    found = [span]
    while found[-1]["parentId"] is not None:
        found.append(spans[found[-1]["parentId"]])
    return found
