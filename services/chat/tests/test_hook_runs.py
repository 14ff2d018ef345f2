"""Hooks at work in turns: asked in order, obeyed, told; and what they did, in the audit of the session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from popagent_agent.ports import ToolCall
from popagent_chat.hooks import store
from popagent_db.pool import Pool, open_pool
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import CreateHook, HookFields, HookRunView, ListHookRuns
from popagent_proto.chat.sessions import CreateSession, CreateSessionBody, DeleteSession
from popagent_proto.chat.turns import StopTurn
from popagent_runs import late_rows
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.rows import HookRun
from popagent_runs.hooks.running import RunHooks
from popagent_telemetry import register_secret
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.hook_server import HookServer, Told, always, answer, denies, hangs
from services.chat.tests.running import Chat, Door

READ_README = ScriptedCall("read", '{"path": "README.md"}')


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with HookServer() as running:
        yield running


@pytest.fixture(autouse=True)
async def chat(server: HookServer, start: StartChat, pool: Pool) -> Chat:
    await pool.execute("delete from hooks")
    return await start(hook_origins=server.origin)


class Hooks:
    """Makes hooks of the server; each is called after its path."""

    def __init__(self, door: Door, server: HookServer) -> None:
        self._door = door
        self._server = server

    async def add(self, event: str, path: str, **fields: Any) -> str:
        given = {"name": path, "event": event, "url": f"{self._server.origin}/{path}", "timeout_ms": 5_000, **fields}
        made = HookFields.model_validate(given, by_name=True)
        view = await self._door.ask(CreateHook(command_id=new_id(), fields=made))
        return str(view.id)


@pytest.fixture
def hooks(door: Door, server: HookServer) -> Hooks:
    return Hooks(door, server)


async def runs_of(door: Door, session: str) -> list[HookRunView]:
    page = await door.ask(ListHookRuns(session_id=session, limit=200))
    assert page.next_cursor is None
    runs: list[HookRunView] = page.items
    return runs


def lines(runs: list[HookRunView]) -> list[tuple[str, str, str, str | None]]:
    return [(run.event, run.hook_name, run.status, run.decision) for run in runs]


async def test_a_turn_asks_its_hooks_in_order_and_every_run_stands_in_the_audit(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer
) -> None:
    model.script(Reply(tool_calls=(READ_README,)), Reply(text="The word is heron."), Reply(text="Again."))
    session = new_id()
    for event in ("Stop", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SessionStart"):
        await hooks.add(event, event)
    await hooks.add("PreToolUse", "second", order_index=9)
    await hooks.add("PreToolUse", "first", order_index=1, matcher="re.d")
    await hooks.add("PreToolUse", "other", matcher="write")
    await hooks.add("PreToolUse", "off", enabled=False)

    turn = await door.say("What is the word?", session)
    await door.say("And now?", session)

    runs = await runs_of(door, session)
    assert turn.message["metadata"]["hooks"] == {"runs": 6, "denied": 0}
    assert lines(runs) == [
        ("SessionStart", "SessionStart", "ok", None),
        ("UserPromptSubmit", "UserPromptSubmit", "ok", "allow"),
        ("PreToolUse", "first", "ok", "allow"),
        ("PreToolUse", "second", "ok", "allow"),
        ("PostToolUse", "PostToolUse", "ok", None),
        ("Stop", "Stop", "ok", "allow"),
        ("UserPromptSubmit", "UserPromptSubmit", "ok", "allow"),
        ("Stop", "Stop", "ok", "allow"),
    ]
    assert [told.path.removeprefix("/") for told in server.told] == [run.hook_name for run in runs]
    assert {run.turn_id for run in runs[:6]} == {turn.view.turn_id}
    post = runs[4]
    assert (post.subject, post.input["arguments"], post.trace_id) == (
        "read",
        {"path": "README.md"},
        turn.message["metadata"].get("traceId"),
    )
    assert "heron" in post.input["output"]
    sent = server.told[4].json
    assert sent["runId"] == post.id
    assert (sent["input"], sent["sessionId"], sent["agentId"]) == (post.input, session, "orchistrator")
    assert "traceparent" in server.told[4].headers


async def test_a_refused_call_is_not_made_the_rest_is_skipped_and_the_hook_is_not_asked_again(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer
) -> None:
    server.answers["/second"] = denies("Nobody reads this.")
    model.script(Reply(tool_calls=(READ_README,)), Reply(tool_calls=(READ_README,)), Reply(text="I may not."))
    session = new_id()
    for order, name in enumerate(("first", "second", "third")):
        await hooks.add("PreToolUse", name, order_index=order)
    await hooks.add("PostToolUseFailure", "told")

    turn = await door.say("Read it.", session)

    sentence = "The hook “second” refused this: Nobody reads this."
    errors = [part["errorText"] for part in turn.message["parts"] if part["type"] == "tool-read"]
    assert (turn.text, errors) == ("I may not.", [sentence, sentence])
    assert turn.message["metadata"]["hooks"] == {"runs": 3, "denied": 1}
    assert sentence in str(model.requests[-1].body["messages"])
    assert lines(await runs_of(door, session)) == [
        ("PreToolUse", "first", "ok", "allow"),
        ("PreToolUse", "second", "denied", "deny"),
        ("PreToolUse", "third", "skipped", None),
    ]
    assert server.paths == ["/first", "/second"]


async def test_a_refused_message_is_kept_answered_with_the_reason_and_no_model_ever_sees_it(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer, pool: Pool
) -> None:
    async def guard(told: Told) -> bytes:
        bad = "launch" in told.json["input"]["prompt"]
        return answer({"decision": "deny", "reason": "No rockets."} if bad else {"decision": "allow"})

    server.answers["/guard"] = guard
    await hooks.add("UserPromptSubmit", "guard")
    session = new_id()
    await door.say("Hello", session)

    refused = await door.say("launch it", session)
    after = await door.say("Never mind", session)

    sentence = "The hook “guard” refused this: No rockets."
    assert refused.text == sentence
    assert refused.message["metadata"]["error"] == {"class": "hook_denied", "text": sentence}
    assert refused.message["metadata"]["hooks"] == {"runs": 1, "denied": 1}
    state = await pool.fetch("select state, error_class from turns where id = $1", refused.view.turn_id)
    assert tuple(state[0]) == ("failed", "hook_denied")
    stored = [message["parts"][0].get("text") for message in await door.stored(session) if message["role"] == "user"]
    assert stored == ["Hello", "launch it", "Never mind"]
    assert after.ending["type"] == "finish"
    assert len(model.requests) == 2
    asked = str(model.requests[-1].body)
    assert "Hello" in asked
    assert "launch" not in asked
    assert "rockets" not in asked


async def test_work_that_is_handed_on_is_asked_about_by_the_specialists_id_and_its_end_is_told(
    door: Door, server: HookServer, hooks: Hooks, chat: Chat
) -> None:
    server.answers["/start"] = denies("It is on leave.")
    for event in ("PreToolUse", "PostToolUse", "SubagentStop"):
        await hooks.add(event, event)
    await hooks.add("SubagentStart", "start", matcher="reviewer")
    session = new_id()
    await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=session)))
    async with chat.pool.acquire() as conn:
        stored = await store.ENABLED.all(conn)
    run_hooks = RunHooks(chat.deps.hooks, chat.deps.hook_audit, stored, session, "orchistrator", "t1")
    task = {"prompt": "Look at it."}
    looked, reviewed = ToolCall("c1", "agent-researcher", task), ToolCall("c2", "agent-reviewer", task)

    allowed = await run_hooks.before_tool("orchistrator", looked)
    await run_hooks.after_tool("orchistrator", looked, "Found.", error=False)
    refused = [await run_hooks.before_tool("orchistrator", reviewed) for _ in range(2)]

    assert (allowed, refused) == (None, ["The hook “start” refused this: It is on leave."] * 2)
    runs = await runs_of(door, session)
    assert [(each.event, each.subject) for each in runs] == [
        ("PreToolUse", "agent-researcher"),
        ("PostToolUse", "agent-researcher"),
        ("SubagentStop", "researcher"),
        ("PreToolUse", "agent-reviewer"),
        ("SubagentStart", "reviewer"),
    ]
    ended = {"callId": "c1", "agent": "researcher", "prompt": "Look at it.", "result": "Found.", "failed": False}
    assert runs[2].input == ended


@pytest.mark.parametrize("on_failure", ["block", "allow"])
async def test_a_hook_that_hangs_and_one_that_lies_are_settled_by_their_policy(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer, on_failure: str
) -> None:
    server.answers |= {"/hangs": hangs, "/lies": always(answer(b"<html>fine</html>"))}
    model.script(Reply(tool_calls=(READ_README, ScriptedCall("list", '{"path": "."}'))), Reply(text="Well."))
    session = new_id()
    await hooks.add("PreToolUse", "hangs", matcher="read", timeout_ms=200, on_failure=on_failure)
    await hooks.add("PreToolUse", "lies", matcher="list", on_failure=on_failure)
    await hooks.add("PostToolUse", "hangs", matcher="read", timeout_ms=100)

    turn = await door.say("Look.", session)

    parts = {part["type"]: part for part in turn.message["parts"] if part["type"].startswith("tool-")}
    wanted = {"block": "output-error", "allow": "output-available"}[on_failure]
    assert {part["state"] for part in parts.values()} == {wanted}
    runs = await runs_of(door, session)
    decision = {"block": "deny", "allow": "allow"}[on_failure]
    pre = {run.hook_name: run for run in runs if run.event == "PreToolUse"}
    assert (pre["hangs"].status, pre["hangs"].decision) == ("timeout", decision)
    assert (pre["lies"].status, pre["lies"].decision, pre["lies"].output) == ("error", decision, "<html>fine</html>")
    if on_failure == "block":
        assert parts["tool-read"]["errorText"] == (
            "The hook “hangs” failed, and is set to refuse then. It did not answer within 200 ms."
        )
    else:
        assert [run.status for run in runs if run.event == "PostToolUse"] == ["timeout"]


async def test_an_objection_at_the_end_sends_the_model_back(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer
) -> None:
    async def wants_tests(told: Told) -> bytes:
        done = "tests pass" in told.json["input"]["answer"]
        return answer() if done else answer({"decision": "deny", "reason": "Run the tests."})

    server.answers["/stop"] = wants_tests
    model.script(Reply(text="Done."), Reply(text="The tests pass."))
    session = new_id()
    await hooks.add("Stop", "stop")

    turn = await door.say("Change it.", session)

    assert turn.message["metadata"]["steps"] == 2
    assert turn.text.endswith("The tests pass.")
    assert "Run the tests." in str(model.requests[-1].body["messages"][-1])
    assert [run.status for run in await runs_of(door, session)] == ["denied", "ok"]


async def test_secrets_reach_neither_a_hook_nor_the_audit(
    door: Door, server: HookServer, hooks: Hooks, model: ModelServer, root: Path, pool: Pool
) -> None:
    register_secret("hunter2hunter2", "a password")
    (root / "default" / "notes.txt").write_text("ghp_0123456789abcdefghijklmn and hunter2hunter2\n")
    leak = b"I saw hunter2hunter2 and AKIAABCDEFGHIJKLMNOP"
    server.answers |= {"/pre": always(answer(b'{"decision": "deny", "reason": "hunter2hunter2"}'))}
    server.answers |= {"/post": always(answer(leak))}
    model.script(
        Reply(tool_calls=(ScriptedCall("read", '{"path": "notes.txt"}'),)),
        Reply(tool_calls=(ScriptedCall("list", '{"path": "hunter2hunter2"}'),)),
        Reply(text="Done."),
    )
    session = new_id()
    for event, path, matcher in (("PreToolUse", "pre", "list"), ("PostToolUse", "post", "*"), ("Stop", "stop", "*")):
        await hooks.add(event, path, matcher=matcher)
    await hooks.add("UserPromptSubmit", "prompt")

    turn = await door.say("My password: hunter2hunter2, key sk-abcdefghijklmnop", session)

    seen = str([told.body for told in server.told])
    stored = str([dict(row) for row in await pool.fetch("select * from hook_runs where session_id = $1", session)])
    for secret in ("hunter2hunter2", "ghp_0123456789", "sk-abcdefghij"):
        assert secret not in seen
        assert secret not in stored
    assert "ABCDEFGHIJKLMNOP" not in stored
    errors = [part["errorText"] for part in turn.message["parts"] if part["type"] == "tool-list"]
    assert errors == ["The hook “pre” refused this: [redacted:a password]"]
    assert {told.path for told in server.told} == {"/prompt", "/post", "/pre", "/stop"}


async def test_what_is_large_is_told_and_kept_within_bounds(
    door: Door, server: HookServer, hooks: Hooks, pool: Pool
) -> None:
    server.answers["/big"] = always(answer(b"y" * 60_000))
    session = new_id()
    await hooks.add("UserPromptSubmit", "big", on_failure="allow")

    await door.say("\U0001f40d" * 60_000, session)

    [run] = await runs_of(door, session)
    assert len(server.told[0].body) < 20_000
    assert len(run.output.encode()) <= 16_384
    assert run.input["prompt"].endswith("…")
    assert run.status == "error"


async def test_a_stop_does_not_wait_for_a_hook_and_the_audit_says_so(
    door: Door, server: HookServer, hooks: Hooks, chat: Chat
) -> None:
    asked = asyncio.Event()

    async def hangs_and_tells(told: Told) -> bytes:
        asked.set()
        return await hangs(told)

    server.answers["/guard"] = hangs_and_tells
    await hooks.add("UserPromptSubmit", "guard", timeout_ms=30_000)
    session = new_id()
    turn = await door.start("Hello", session)
    await asyncio.wait_for(asked.wait(), 10)

    await door.ask(StopTurn(session_id=session))
    await turn.read()
    await chat.deps.hook_audit.write()

    assert turn.ending["type"] == "abort"
    [run] = await runs_of(door, session)
    assert (run.status, run.decision, run.reason) == ("error", None, "The turn was ended while the hook was asked.")


async def test_hooks_hear_of_a_deleted_session_and_cannot_keep_it(
    door: Door, server: HookServer, hooks: Hooks, pool: Pool
) -> None:
    server.answers["/end"] = denies("Keep it.")
    await hooks.add("SessionEnd", "end")
    session = new_id()
    await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=session)))

    await door.ask(DeleteSession(session_id=session))
    await until(lambda: bool(server.told))

    assert (server.told[0].json["event"], server.told[0].json["sessionId"]) == ("SessionEnd", session)
    assert await pool.fetchval("select count(*) from sessions where id = $1", session) == 0
    assert await pool.fetchval("select count(*) from hook_runs where session_id = $1", session) == 0


def run(session: str, number: int, **fields: Any) -> HookRun:
    values = {"id": f"{session}-{number}", "about_id": session, "turn_id": None, "trace_id": None, "subject": ""}
    values |= {"event": "Stop", "hook_id": "h", "hook_name": "h", "decision": None, "reason": "", "status": "ok"}
    return HookRun.model_validate({**values, "input": {}, "output": "", "duration_ms": number, **fields})


async def test_the_audit_waits_for_a_database_that_is_away_keeps_its_order_and_drops_what_cannot_be_stored(
    door: Door, dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_rows, "AWAY_S", 0.0)
    session = new_id()
    await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=session)))
    away = await open_pool(dsn, application_name="test", max_size=1)
    audit = HookAudit(away, store.AUDIT.add)

    await away.close()
    audit.add([run(session, number) for number in range(3)])
    await audit.write()
    assert await runs_of(door, session) == []
    back = await open_pool(dsn, application_name="test", max_size=1)
    audit._pool = back
    audit.add([run(session, 3)])
    await audit.write()
    audit.add([run(session, 2)])  # stored before, as after a commit without an answer
    audit.add([run(session, 4)])
    await audit.write()
    audit.add([run(session, 5, output="x" * 20_000), run(session, 6)])
    await audit.write()
    await back.close()
    audit.add([run(session, 7)])
    await audit.close()

    assert [each.duration_ms for each in await runs_of(door, session)] == [0, 1, 2, 3, 4, 6]
    assert "runs of hooks wait for the database" in caplog.text
    assert caplog.text.count("runs of hooks are missing") == 2


async def test_a_database_that_was_away_a_moment_ago_is_not_waited_for_again(
    dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_rows, "WAIT_S", 0.1)
    away = await open_pool(dsn, application_name="test", max_size=1)
    audit = HookAudit(away, store.AUDIT.add)
    async with away.acquire():
        audit.add([run("s", 1)])
        await asyncio.gather(*(audit.write() for _ in range(5)))
    await away.close()

    assert caplog.text.count("runs of hooks wait for the database") == 1


async def test_of_too_many_that_wait_the_oldest_go(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    audit = HookAudit(pool, store.AUDIT.add)

    audit.add([run("s", number) for number in range(late_rows.MOST_WAITING + 10)])

    assert (len(audit._waiting), audit._waiting[0].duration_ms) == (late_rows.MOST_WAITING, 10)
    assert "runs of hooks are missing" in caplog.text
