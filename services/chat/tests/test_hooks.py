"""Hooks as a person keeps them: stored once, changed by one at a time, tried, refused by the field that is wrong."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from popagent_chat.hooks import store
from popagent_chat.hooks.handlers import LONGEST_TRIAL_MS
from popagent_db.pool import Pool
from popagent_kit import sealing
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import (
    HOOK_SECRET_PURPOSE,
    MOST_HOOKS,
    CreateHook,
    DeleteHook,
    HookChanges,
    HookFields,
    HookRunList,
    HookTrialView,
    HookView,
    ListHookRuns,
    ListHooks,
    TryHook,
    UpdateHook,
)
from popagent_proto.chat.secrets import GetSealingKey
from popagent_proto.chat.sessions import CreateSession, CreateSessionBody, DeleteSession
from popagent_runs.hooks import audited
from popagent_runs.hooks.asking import SIGNATURE
from services.chat.tests.conftest import StartChat
from services.chat.tests.hook_server import HookServer, always, answer, denies, drips, hangs
from services.chat.tests.running import Chat, Door, refusal

SECRET = "a-long-enough-secret-of-hooks"
SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
async def server() -> AsyncIterator[HookServer]:
    async with HookServer() as running:
        yield running


@pytest.fixture(autouse=True)
async def chat(server: HookServer, start: StartChat, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> Chat:
    monkeypatch.setenv("POPAGENT_SECRET_KEY", SECRET_KEY)
    await pool.execute("delete from hooks")
    await pool.execute("delete from secrets")
    return await start(hook_origins=server.origin)


async def create(door: Door, server: HookServer, path: str = "/hook", **fields: Any) -> HookView:
    secret, command_id = fields.pop("secret", None), fields.pop("command_id", None) or new_id()
    given = {"name": "Guard", "event": "PreToolUse", "url": server.origin + path, **fields}
    more = {} if secret is None else {"sealed_secret": await sealed(door, secret)}
    view: HookView = await door.ask(
        CreateHook(command_id=command_id, fields=HookFields.model_validate(given, by_name=True), **more)
    )
    return view


async def change(door: Door, hook: HookView, **changes: Any) -> HookView:
    secret = {"sealed_secret": changes.pop("sealed_secret")} if "sealed_secret" in changes else {}
    body = HookChanges.model_validate({"revision": hook.revision, **changes}, by_name=True)
    view: HookView = await door.ask(UpdateHook(command_id=new_id(), hook_id=hook.id, changes=body, **secret))
    return view


async def sealed(door: Door, secret: str) -> str:
    public = (await door.ask(GetSealingKey())).public_key
    return sealing.sealed(public, secret, HOOK_SECRET_PURPOSE)


async def test_a_hook_is_stored_once_told_and_listed_in_the_order_in_which_hooks_run(
    door: Door, server: HookServer, pool: Pool
) -> None:
    command_id = new_id()

    late = await create(door, server, order_index=200)
    first = await create(door, server, command_id=command_id, matcher="write|edit", timeout_ms=100, order_index=0)
    again = await create(door, server, command_id=command_id, matcher="write|edit", timeout_ms=100, order_index=0)
    told = await create(door, server, event="PostToolUse")

    assert (first.id, first.revision, first.on_failure, first.has_secret) == (command_id, 0, "block", False)
    assert again == first
    assert told.on_failure == "allow"
    listed = await door.ask(ListHooks())
    assert [hook.id for hook in listed.items] == [first.id, told.id, late.id]
    assert listed.origins == [server.origin]
    assert "POPAGENT_HOOK_FOLDER" in listed.commands_problem
    assert "Set it in .env beside ./popagent" in listed.commands_problem
    subjects = await pool.fetch("select subject from outbox where aggregate_id = $1", first.id)
    assert [row["subject"] for row in subjects] == ["popagent.chat.evt.hooks-changed.v1"]


async def test_the_key_of_one_hook_makes_no_other_and_loses_none(door: Door, server: HookServer) -> None:
    command_id = new_id()
    await create(door, server, command_id=command_id)

    others: list[dict[str, Any]] = [{"name": "Another"}, {"event": "Stop"}, {"on_failure": "allow"}, {"secret": SECRET}]
    told = [await refusal(create(door, server, command_id=command_id, **fields)) for fields in others]

    assert [(error.http_status, error.code) for error in told] == [(409, "key_used")] * len(others)
    assert len((await door.ask(ListHooks())).items) == 1


async def test_a_hook_that_cannot_be_is_refused_by_its_field_and_leaves_nothing(
    door: Door, server: HookServer, pool: Pool
) -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"url": "https://elsewhere.example/"}, "url"),
        ({"url": "nonsense"}, "url"),
        ({"url": ""}, "url"),
        ({"argv": ["/bin/true"]}, "argv"),
        ({"kind": "command", "argv": ["/bin/true"]}, "url"),
        ({"kind": "command", "url": "", "argv": []}, "argv"),
        ({"kind": "command", "url": "", "argv": [""]}, "argv"),
        ({"kind": "command", "url": "", "argv": ["/bin/true"], "secret": SECRET}, "secret"),
        ({"kind": "command", "url": "", "argv": ["/bin/true"]}, "kind"),
        ({"matcher": "("}, "matcher"),
        ({"matcher": "write", "event": "Stop"}, "matcher"),
        ({"on_failure": "block", "event": "SessionEnd"}, "onFailure"),
        ({"secret": "short"}, "secret"),
        ({"secret": "x" * 257}, "secret"),
    ]

    for fields, field in wrong:
        error = await refusal(create(door, server, **fields))
        assert (error.http_status, error.field) == (422, field), fields
    assert await pool.fetchval("select (select count(*) from hooks) + (select count(*) from secrets)") == 0


async def test_of_two_who_change_a_hook_one_is_refused_with_the_stored_one(door: Door, server: HookServer) -> None:
    hook = await create(door, server)

    results = await asyncio.gather(
        change(door, hook, name="One"), change(door, hook, name="Other"), return_exceptions=True
    )

    [changed] = [result for result in results if isinstance(result, HookView)]
    [error] = [result for result in results if not isinstance(result, HookView)]
    assert changed.revision == 1
    assert (getattr(error, "code", None), error.extra["hook"]["name"]) == ("revision_conflict", changed.name)  # type: ignore[union-attr]


async def test_what_a_change_makes_must_be_a_hook_again(door: Door, server: HookServer) -> None:
    hook = await create(door, server, matcher="write")

    moved = await refusal(change(door, hook, event="Stop"))
    null = await refusal(change(door, hook, timeout_ms=None))
    told = await change(door, hook, event="PostToolUse", enabled=False)
    kept = await change(door, told, name="Another name")

    assert (moved.field, null.field) == ("matcher", "timeoutMs")
    assert (told.on_failure, told.enabled, told.url) == ("allow", False, hook.url)
    assert (kept.name, kept.event, kept.revision) == ("Another name", "PostToolUse", 2)


async def test_a_deleted_hook_is_gone_with_its_secret(door: Door, server: HookServer, pool: Pool) -> None:
    hook = await create(door, server, secret=SECRET)

    await door.ask(DeleteHook(hook_id=hook.id))

    assert (await refusal(door.ask(DeleteHook(hook_id=hook.id)))).http_status == 404
    assert (await refusal(door.ask(TryHook(hook_id=hook.id)))).http_status == 404
    assert (await refusal(change(door, hook))).http_status == 404
    assert await pool.fetchval("select count(*) from secrets") == 0
    assert await pool.fetchval("select max(payload::json ->> 'version') from outbox where aggregate_id = $1", hook.id)


async def test_there_is_a_bound_to_the_number_of_hooks(door: Door, server: HookServer, pool: Pool) -> None:
    hook = await create(door, server)
    await pool.execute(
        "insert into hooks"
        " (id, name, event, matcher, kind, url, timeout_ms, on_failure, order_index, enabled, revision)"
        " select 'h' || n, name, event, matcher, kind, url, timeout_ms, on_failure, order_index, enabled, revision"
        " from hooks, generate_series(2, $1) n where id = $2",
        MOST_HOOKS,
        hook.id,
    )

    error = await refusal(create(door, server))

    assert (error.http_status, error.code) == (409, "too_many_hooks")
    assert len((await door.ask(ListHooks())).items) == MOST_HOOKS


async def test_a_secret_signs_every_request_and_is_told_nowhere(
    door: Door, server: HookServer, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers["/hook"] = always(answer(f"I know {SECRET}".encode()))
    hook = await create(door, server, secret=SECRET)

    tried = await door.ask(TryHook(hook_id=hook.id))
    kept = await change(door, hook, name="Kept")
    none = await change(door, kept, sealed_secret=None)
    await door.ask(TryHook(hook_id=hook.id))

    signed, unsigned = server.told
    moment, _, digest = signed.headers[SIGNATURE].partition(",v1=")
    expected = hmac.new(SECRET.encode(), f"{moment.removeprefix('t=')}.".encode() + signed.body, hashlib.sha256)
    assert digest == expected.hexdigest()
    assert (hook.has_secret, kept.has_secret, none.has_secret) == (True, True, False)
    assert SIGNATURE not in unsigned.headers
    stored = str(await pool.fetch("select payload from outbox")) + str(await pool.fetch("select * from secrets"))
    assert SECRET not in hook.model_dump_json() + tried.model_dump_json() + caplog.text + stored


async def test_a_trial_shows_what_a_hook_makes_of_an_example(door: Door, server: HookServer) -> None:
    server.answers["/no"] = denies("Not before lunch.")
    agreeing = await create(door, server, enabled=False)
    denying = await create(door, server, "/no")
    told = await create(door, server, "/no", event="SessionEnd")

    views = [await door.ask(TryHook(hook_id=hook.id)) for hook in (agreeing, denying, told)]

    assert [(view.status, view.decision, view.reason) for view in views] == [
        ("ok", "allow", ""),
        ("denied", "deny", "Not before lunch."),
        ("ok", None, ""),
    ]
    assert [view.sent for view in views] == [each.json for each in server.told]
    assert [(each.json["event"], each.json["test"]) for each in server.told] == [
        ("PreToolUse", True),
        ("PreToolUse", True),
        ("SessionEnd", True),
    ]
    assert server.told[0].json["input"]["arguments"] == {"path": "notes.md", "content": "An example."}


ODD = {
    "hangs": (hangs, "timeout", "did not answer within 300 ms"),
    "drips": (drips(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n", *[b" "] * 50), "timeout", "within 300 ms"),
    "drips its head": (drips(b"HTTP/1.1 200 OK\r\n", *[b"x: y\r\n"] * 50), "timeout", "within 300 ms"),
    "hangs up": (always(b""), "error", "broke the connection off"),
    "is no HTTP": (always(b"hello\r\n\r\n"), "error", "It "),
    "500": (always(answer(status="500 Oh")), "error", "answered 500"),
    "redirects": (
        always(answer(status="307 Go", headers="location: http://169.254.169.254/\r\n")),
        "error",
        "redirect",
    ),
    "no JSON": (always(answer(b"{deny")), "error", "not JSON"),
    "another shape": (always(answer(b"[1]")), "error", '"decision"'),
    "another word": (always(answer({"decision": "maybe"})), "error", '"decision"'),
    "a number": (always(answer({"decision": 1})), "error", '"decision"'),
    "10 MB": (always(answer(b"x" * 10_000_000)), "error", "more than 64 kB"),
    "a lie of its length": (
        always(b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{}"),
        "error",
        "broke the connection off",
    ),
    "allows and denies": (always(answer(b'{"decision": "deny", "decision": "allow"}')), "error", "twice"),
    "allows something else": (
        always(answer({"decision": "allow", "updatedInput": {"path": "../../etc/passwd"}})),
        "error",
        "“updatedInput”",
    ),
    "no Unicode": (always(answer(b'{"decision": "\xff"}')), "error", "not JSON"),
    "half a character": (always(answer(b'{"decision": "allow", "reason": "\\ud800"}')), "error", "not JSON"),
    "too deep": (always(answer(b"[" * 50_000)), "error", "not JSON"),
    "packed": (always(answer(b"\x1f\x8b" + b"0" * 100, headers="content-encoding: gzip\r\n")), "error", "not JSON"),
    "endless head": (always(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 1_000_000), "error", "It "),
}


async def test_whatever_a_hook_does_its_policy_decides(door: Door, server: HookServer) -> None:
    server.answers = {f"/{number}": odd for number, (odd, _, _) in enumerate(ODD.values())}

    async def tried(path: str, on_failure: str) -> HookTrialView:
        hook = await create(door, server, path, timeout_ms=300, on_failure=on_failure)
        view: HookTrialView = await door.ask(TryHook(hook_id=hook.id))
        return view

    for (name, (_, status, words)), path in zip(ODD.items(), server.answers, strict=True):
        blocked, allowed = [await tried(path, each) for each in ("block", "allow")]
        assert (blocked.status, blocked.decision) == (status, "deny"), name
        assert (allowed.status, allowed.decision) == (status, "allow"), name
        assert words in blocked.reason
        assert len(blocked.output) < 20_000
    assert server.paths == [path for path in server.answers for _ in range(2)]


async def test_a_server_that_is_gone_and_an_origin_that_is_allowed_no_more_are_failures(
    door: Door, server: HookServer, pool: Pool
) -> None:
    gone = await create(door, server)
    await pool.execute("update hooks set url = 'http://127.0.0.1:1/' where id = $1", gone.id)

    view = await door.ask(TryHook(hook_id=gone.id))

    assert (view.status, view.decision) == ("error", "deny")
    assert "POPAGENT_HOOK_ORIGINS" in view.reason
    assert server.told == []
    assert TryHook.answer_within_s * 1_000 > LONGEST_TRIAL_MS


async def runs_of(door: Door, session: str, **fields: Any) -> HookRunList:
    page: HookRunList = await door.ask(ListHookRuns(session_id=session, **fields))
    return page


async def add_runs(pool: Pool, session: str, count: int, *, size: int = 10, turn: str = "t1") -> None:
    await pool.execute(
        "insert into hook_runs (id, session_id, turn_id, event, hook_id, hook_name, subject, reason, status, input,"
        " output, duration_ms) select $1 || n, $1, $2, 'PreToolUse', 'h', 'Guard', 'write', '', 'ok', '{}',"
        " repeat('x', $4), 1 from generate_series(1, $3) n",
        *(session, turn, count, size),
    )


async def test_the_audit_of_a_session_is_read_in_order_page_by_page(door: Door, pool: Pool) -> None:
    session, other = new_id(), new_id()
    for each in (session, other):
        await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=each)))
    await add_runs(pool, session, 3)
    await add_runs(pool, other, 2)
    await pool.execute(
        "update hook_runs set id = id || 'a', turn_id = 't2' where session_id = $1 and id like '%3'", session
    )
    await pool.execute("update hook_runs set created_at = created_at - seq * interval '1 hour'")

    first = await runs_of(door, session, limit=2)
    second = await runs_of(door, session, limit=2, cursor=first.next_cursor)
    turn = await runs_of(door, session, turn_id="t2")

    seqs = [run.seq for run in [*first.items, *second.items]]
    assert (len(first.items), len(second.items), second.next_cursor) == (2, 1, None)
    assert seqs == sorted(seqs)
    assert [run.turn_id for run in turn.items] == ["t2"]
    assert (await refusal(runs_of(door, new_id()))).http_status == 404
    for cursor in ("", "x", "-1", "9" * 30, "1\x00"):
        assert (await refusal(runs_of(door, session, cursor=cursor))).field == "cursor"


async def test_a_page_of_the_audit_is_bounded_in_bytes(door: Door, pool: Pool) -> None:
    session = new_id()
    await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=session)))
    await add_runs(pool, session, 120, size=16_000)

    seen, cursor = [], None
    while True:
        page = await runs_of(door, session, limit=200, cursor=cursor)
        assert len(page.encode()) < 1_000_000
        seen += [run.seq for run in page.items]
        if (cursor := page.next_cursor) is None:
            break

    assert (len(seen), len(set(seen))) == (120, 120)


async def test_old_and_surplus_runs_go_and_those_of_a_deleted_session(
    door: Door, pool: Pool, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audited, "KEPT_RUNS", 4)
    session, deleted = new_id(), new_id()
    for each in (session, deleted):
        await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(id=each)))
    await add_runs(pool, session, 6)
    await add_runs(pool, deleted, 2)
    await pool.execute(
        "update hook_runs set created_at = now() - interval '31 days' where session_id = $1 and id like '%2'", session
    )

    await audited.Retention(chat.pool, store.AUDIT).prune()
    left = [run.id for run in (await runs_of(door, session)).items]
    await door.ask(DeleteSession(session_id=deleted))

    assert left == [f"{session}{number}" for number in (3, 4, 5, 6)]
    assert await pool.fetchval("select count(*) from hook_runs where session_id = $1", deleted) == 0
