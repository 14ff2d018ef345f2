"""A credential of every shape on every way through the suite: what was done with it was done, and nobody wrote it down.

Every pair of a shape and a way has a word of its own, so that a finding names both.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import httpx2
import orjson
import pytest

from popagent_kit.ids import new_id
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_replies import Reply, ScriptedCall, call
from tests.hook_door import HookDoor, denies
from tests.stored import all_files, all_rows
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(180)

WORD: Final = "CANARY"
# Each holds the word once; digits make it what a real one looks like.
SHAPES: Final = {
    "provider": "key sk-proj-{}xY0123456789abcdef here",
    "github": "ghp_{}0123456789abcdefghij",
    "aws": "AKIA{:0<16.16}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.{}c2VjcmV0.c2lnbmF0dXJl",
    "bearer": "Authorization: Bearer {}0123456789",
    "password": "password={}0123",
    "yaml": 'db_password: "{} 0123"',
    "url": "postgresql://me:{}0123@db.example.org/x",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\n{}MIIEpAIBAAKCAQEA0123456789\n-----END RSA PRIVATE KEY-----",
}
WAYS: Final = (
    "message", "title", "answer", "reasoning", "argument", "file", "failure", "broken", "prompt", "report", "decision",
    "provider", "path",
)  # fmt: skip
FOLDER: Final = "with-secrets"
VARIABLE: Final = "STATION_TOKEN"
VALUE: Final = "quiet-heron-of-the-operator"


def word(shape: str, way: str) -> str:
    return f"{WORD}{chr(65 + list(SHAPES).index(shape))}{chr(65 + WAYS.index(way))}X"


def secrets(way: str, sign: str = "\n") -> str:
    """Return a text with a credential of every shape."""
    return sign.join(SHAPES[shape].format(word(shape, way)) for shape in SHAPES)


def words() -> Iterator[tuple[str, str, str]]:
    for shape in SHAPES:
        for way in WAYS:
            yield shape, way, word(shape, way)


def found_in(data: bytes | str) -> list[tuple[str, str]]:
    """Return the shape and way of every credential in it; what PostgreSQL folds for its search, too."""
    text = data if isinstance(data, bytes) else data.encode()
    if WORD.encode() not in text and WORD.lower().encode() not in text:
        return []
    return [(shape, way) for shape, way, said in words() if said.encode() in text or said.lower().encode() in text]


def joined(chunks: list[dict[str, Any]]) -> bytes:
    """Return the texts that grew in a stream, whole: what is parted over its fragments is read all the same."""
    texts: dict[tuple[str, str], str] = {}
    for chunk in chunks:
        for name in ("delta", "inputTextDelta"):
            key = chunk["type"], str(chunk.get("toolCallId") or chunk.get("id"))
            texts[key] = texts.get(key, "") + str(chunk.get(name, ""))
    return "\n".join(texts.values()).encode()


class Wire:
    """What a client was sent, byte for byte."""

    def __init__(self, talk: Talk) -> None:
        self.got: list[bytes] = []
        talk.http.event_hooks["response"].append(self._read)

    async def _read(self, response: httpx2.Response) -> None:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            self.got.append(await response.aread())


@pytest.fixture
async def watched(talk: Talk, running_hook_door: HookDoor) -> AsyncIterator[str]:
    """Hooks of every event for the length of a test; yields the reason that the refusing one gives."""
    reason = f"Not with {secrets('decision', ' ')}"
    running_hook_door.answers["/refuses"] = denies(reason)
    hooks = [
        await talk.json("POST", "/api/hooks", {"name": event, "event": event, "url": f"{running_hook_door.origin}/"})
        for event in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStop", "Stop")
    ]
    refusing = {"name": "refuses", "event": "PreToolUse", "matcher": "list", "orderIndex": 200}
    hooks.append(await talk.json("POST", "/api/hooks", {**refusing, "url": f"{running_hook_door.origin}/refuses"}))
    yield reason
    for hook in hooks:
        await talk.json("DELETE", f"/api/hooks/{hook['id']}")


async def test_no_credential_of_any_shape_is_written_down_on_any_way(
    suite: Suite, talk: Talk, watched: str, running_hook_door: HookDoor
) -> None:
    workspace = suite.workspaces / FOLDER
    workspace.mkdir()
    (workspace / "found.txt").write_text(secrets("file"))
    grant = suite.home / "sandbox" / f"{FOLDER}.toml"
    grant.parent.mkdir(exist_ok=True)
    grant.write_text(f'[environment]\n{VARIABLE} = "{VALUE}"\n')
    wire, session = Wire(talk), new_id()
    made = await talk.json("POST", "/api/workspaces", {"name": "Secrets", "path": FOLDER})
    spelled = orjson.dumps({"path": "spelled.txt", "content": SHAPES["provider"].format(word("provider", "argument"))})
    suite.model.script(
        Reply(
            text=f"I look.\n{secrets('answer')}\nDone.",
            chunks=150,
            reasoning=secrets("reasoning"),
            tool_calls=(
                call("write", path="written.txt", content=secrets("argument")),
                ScriptedCall("write", spelled.decode().replace("sk-", "\\u0073k\\u002d")),
                call("read", path="found.txt"),
                call("read", path=f"no/{secrets('failure', ' ')}"),
                ScriptedCall("read", '{"path": ' + secrets("broken")),
                call("list", path="."),
            ),
        ),
        Reply(tool_calls=(call("agent-implementer", prompt=f"Look for this:\n{secrets('prompt')}"),)),
        Reply(tool_calls=(call("shell", command=f"echo it is ${VARIABLE}; env"),)),
        Reply(text=f"Found:\n{secrets('report')}", chunks=90),
        Reply(text="All seen."),
    )

    asked = await talk.chat(f"Keep these:\n{secrets('message')}", session, workspaceId=made["id"])
    assert asked.text.startswith("I look.")
    assert asked.text.endswith("All seen.")
    suite.model.script(Reply(status=401, error=f"wrong key: {secrets('provider', ' ')}"))
    await talk.chat("Once more", session)
    suite.model.script(Reply(text="Half", fault="error-event", after=1, error=f"refused: {secrets('provider', ' ')}"))
    await talk.chat("And once more", session)
    stored = await talk.messages(session)
    view = await talk.json("GET", f"/api/sessions/{session}")
    await talk.json(
        "PATCH", f"/api/sessions/{session}", {"revision": view["revision"], "title": secrets("title", " ")[:200]}
    )
    for path in ("", "/hooks", "/export?format=markdown", "/export?format=json", "/search?q=heron"):
        await talk.http.get(f"/api/sessions/{session}{path}")
    await talk.http.get("/api/sessions?q=keep")
    await talk.http.get("/api/models")
    for way in (f"/api/sessions/{secrets('path', ' ')}", f"/api/hooks/{secrets('path', ' ')}"):
        await talk.http.delete(way.replace("\n", " "))
    printed = suite.popagent("sessions", "show", session).stdout
    async with asyncio.timeout(20):
        while not (traces := await talk.json("GET", f"/api/observability/traces?sessionId={session}"))["items"]:
            await asyncio.sleep(0.05)
    for trace in traces["items"]:
        await talk.http.get(f"/api/observability/traces/{trace['traceId']}")

    # What was executed had the real ones.
    written = (workspace / "written.txt").read_text()
    assert written == secrets("argument")
    assert found_in(written) == [(shape, "argument") for shape in SHAPES]
    assert word("provider", "argument") in (workspace / "spelled.txt").read_text()
    # What was watched is what is stored.
    assert parts_of(asked.message) == parts_of(stored[1])
    prompts = orjson.dumps([request["body"] for request in suite.model.requests()])
    rows = "\n".join([row async for row in all_rows(suite)])
    if confinement_problem() is None:
        assert f"it is [redacted:{VARIABLE}]" in rows
    places = {
        "prompt": prompts,
        "hook": orjson.dumps(running_hook_door.told),
        "stream": orjson.dumps(asked.chunks),
        "growing": joined(asked.chunks),
        "page": b"".join(wire.got),
        "terminal": printed.encode(),
        "rows": rows.encode(),
    }
    assert {name for name, data in places.items() if b"[redacted]" not in data} == set()
    places |= dict(all_files(suite))
    assert {name: found for name, data in places.items() if (found := found_in(data))} == {}
    assert [name for name, data in places.items() if VALUE.encode() in data] == []


async def test_half_a_credential_waits_wherever_somebody_watches(suite: Suite, talk: Talk) -> None:
    session, told = new_id(), "The key is sk-CANARYHALF0123456789 and no other."
    suite.model.script(Reply(text=told, chunks=len(told), after=told.index("HALF"), hold=True))

    async with talk.open_chat("Which key?", session) as stream:
        async for chunk in stream:
            if chunk["type"] == "text-delta" and stream.answer.text.endswith("sk-"):
                break
        checkpoint = f'"text":"{told.partition("CANARY")[0]}"'
        async with asyncio.timeout(20):
            while not any(checkpoint in row.replace('""', '"') for row in [row async for row in all_rows(suite)]):
                await asyncio.sleep(0.1)
        async with talk.open_join(session) as joined:
            suite.model.release()
            answers = (await stream.read(), await joined.read())

    assert [answer.text for answer in answers] == ["The key is sk-[redacted] and no other."] * 2
    assert [name for name, data in all_files(suite) if b"CANARYH" in data] == []


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parts that every client has; the work of specialists comes to watchers in another way."""
    return [part for part in message["parts"] if part["type"] != "data-agentActivity"]
