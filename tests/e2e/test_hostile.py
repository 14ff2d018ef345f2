"""The whole suite against those who mean it harm, and those who do not look: no 5xx, no effect, a word that helps."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

import httpx2
import orjson
import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, ScriptedCall
from tests.stored import all_rows
from tests.suite import Suite
from tests.talk import Answer, Talk

pytestmark = pytest.mark.timeout(120)


def said(text: str) -> dict[str, Any]:
    """Return a person's message."""
    return {"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]}


USER: Final = said("hi")
# (method, path, body, status, field)
REFUSED: Final[list[tuple[str, str, bytes, int, str | None]]] = [
    ("POST", "/api/chat", b"", 422, "body"),
    ("POST", "/api/chat", b"[" * 100_000, 400, None),
    ("POST", "/api/chat", b'{"id":"a","message":' + b'{"a":' * 5_000, 400, None),
    ("POST", "/api/chat", b'{"id":"\\ud800"}', 400, None),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": said("a\x00b")}), 422, "message.parts.0.text"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": USER, "model": "no-such-model"}), 422, "model"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": USER, "tools": []}), 422, "tools"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": USER, "workspace_id": "default"}), 422, "workspace_id"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": {**USER, "role": "system"}}), 422, "message.role"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "messages": [{"role": "system"}, USER]}), 422, "messages.0.role"),
    ("POST", "/api/chat", orjson.dumps({"id": "h1", "message": said(" \n")}), 422, "message.parts"),
    ("POST", "/api/sessions", b'{"id":"h1","title":"a\\u202eb"}', 422, "title"),
    ("POST", "/api/sessions", b'{"id":"h1","__proto__":{}}', 422, "__proto__"),
    ("POST", "/api/sessions", b'{"id":"h1","title":NaN}', 400, None),
    ("PATCH", "/api/sessions/known", b'{"revision":false}', 422, "revision"),
    ("PATCH", "/api/sessions/known", b'{"revision":0,"archived":1}', 422, "archived"),
    ("PATCH", "/api/sessions/known", b'{"revision":1e30}', 422, "revision"),
    ("PATCH", "/api/sessions/known", b'{"revision":9,"title":"x"}', 409, None),
    ("PUT", "/api/sessions/known", b'{"revision":0,"messages":[{"id":"../x"}]}', 422, "messages.0.id"),
    ("DELETE", "/api/sessions/known", b'{"really":false}', 422, "body"),
    ("DELETE", "/api/sessions/known%00", b"", 404, None),
    ("GET", "/api/sessions/..%2f..%2fetc%2fpasswd", b"", 404, None),
    ("GET", "/api/sessions/%252e%252e", b"", 404, None),
    ("GET", "/api/sessions?archived=true&archived=false", b"", 422, "archived"),
    ("GET", "/api/sessions?cursor=%ff", b"", 422, "cursor"),
    ("POST", "/api/workspaces", b'{"name":"x","path":"../home"}', 422, "path"),
    ("POST", "/api/workspaces", b'{"name":"x","path":"/etc"}', 422, "path"),
    ("PATCH", "/api/settings/agent-runtime", b'{"supervisorMaxSteps":129}', 422, "supervisorMaxSteps"),
    ("PATCH", "/api/settings/agent-runtime", b'{"supervisorMaxSteps":true}', 422, "supervisorMaxSteps"),
    ("PATCH", "/api/settings/agent-runtime", b'{"defaultModel":"no-such-model"}', 422, "defaultModel"),
]  # fmt: skip

KEY_FILE: Final = "-----BEGIN RSA PRIVATE KEY-----\nCANARYrow1\nCANARYrow2\n-----END RSA PRIVATE KEY-----\n"
OBEYED: Final = (
    ("read", '{"path":"../../home/credentials/secret-key"}'),
    ("read", '{"path":"/etc/passwd"}'),
    ("read", '{"path":"out/passwd"}'),
    ("read", '{"path":"environ"}'),
    ("read", '{"path":".env"}'),
    ("read", '{"path":"notes.txt"}'),
    ("read", '{"path":"notes.txt","line":3}'),
    ("grep", '{"pattern":"CANARY"}'),
    ("grep", '{"pattern":"(a+)+$"}'),
    ("read", '{"path":"README.md","workspaceId":"another"}'),
    ("read", '{"path":"README.md","__proto__":{"admin":true}}'),
    ("read", '{"path":"\\ud800"}'),
    ("read", '{"path":'),
    ("shell", '{"command":"id"}'),
    ("re ad\u202e!", "{}"),
    ("__proto__", "{}"),
)
SECRETS_IN_FILES: Final = ("CANARY", "root:x:0:0")


async def test_what_is_refused_names_its_field_and_changes_nothing(talk: Talk) -> None:
    await talk.json("POST", "/api/sessions", {"id": "known", "title": "Known"})
    before = await state_of(talk)

    told = [await sent(talk, method, path, body) for method, path, body, _, _ in REFUSED]

    assert [(answer.status_code, answer.json().get("field")) for answer in told] == [row[3:] for row in REFUSED]
    assert all(answer.json()["error"] and "Input should" not in answer.json()["error"] for answer in told)
    assert await state_of(talk) == before


async def test_an_obedient_model_gets_nothing_and_its_session_stays_usable(suite: Suite, talk: Talk) -> None:
    folder = suite.workspaces / "default"
    (folder / ".env").write_text("PASSWORD=CANARYenv")
    (folder / "notes.txt").write_text(f"token=sk-CANARY0123456789abcdef\n{KEY_FILE}")
    for name, target in (("out", "/etc"), ("environ", "/proc/self/environ")):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(target)
    calls = tuple(ScriptedCall(name, arguments, f"id {at}") for at, (name, arguments) in enumerate(OBEYED))
    suite.model.script(Reply(tool_calls=calls, tool_style="whole", when="obey"))
    suite.model.set_default(Reply(text="Nothing came of it. \x1b[2J <img src=x onerror=alert(1)>"))

    answer = await talk.chat("obey", "obedient")
    again = await talk.chat("And now?", "obedient")

    stored = orjson.dumps(await talk.messages("obedient")).decode()
    heard = orjson.dumps([request["body"] for request in suite.model.requests()]).decode()
    assert settled(answer) == len(OBEYED)
    assert (answer.ending or {})["type"] == (again.ending or {})["type"] == "finish"
    assert [secret for secret in SECRETS_IN_FILES if secret in stored.replace('"pattern":"CANARY"', "")] == []
    assert [secret for secret in SECRETS_IN_FILES if secret in heard.replace('\\"pattern\\":\\"CANARY\\"', "")] == []
    functions = [call for request in suite.model.requests() for call in calls_in(request["body"])]
    assert functions
    assert all(call["function"]["name"].replace("_", "").isalnum() and " " not in call["id"] for call in functions)


async def test_many_calls_without_end_are_ended(suite: Suite, talk: Talk) -> None:
    many = tuple(ScriptedCall("read", f'{{"path":"README.md","line":{n}}}', f"c{n}") for n in range(100))
    suite.model.script(Reply(tool_calls=many, tool_style="whole", when="a hundred"))
    suite.model.script(Reply(tool_calls=many[:1], when="never ending", times=0))

    hundred = await talk.chat("a hundred", "hundred")
    endless = await talk.chat("never ending", "endless")

    assert settled(hundred) == 100
    assert (hundred.ending or {})["type"] == (endless.ending or {})["type"] == "finish"
    assert endless.text


async def test_thirty_clients_on_one_session_leave_it_whole(suite: Suite, talk: Talk) -> None:
    suite.model.set_default(Reply(text="one two three four five", token_delay_s=0.01))
    await talk.json("POST", "/api/sessions", {"id": "crowd"})

    async def client(number: int) -> list[int]:
        return [(await act(talk, (number + step) % len(ACTS))).status_code for step in range(6)]

    told = Counter(status for statuses in await asyncio.gather(*map(client, range(30))) for status in statuses)
    await talk.http.post("/api/chat/crowd/stop")
    last = await talk.http.delete("/api/sessions/crowd")

    assert set(told) <= {200, 201, 204, 404, 409, 422}
    assert last.status_code in {200, 404}
    assert (await talk.http.get("/api/sessions/crowd")).status_code == 404
    assert (await talk.chat("Hello", "after-the-crowd")).done


async def test_no_credential_lies_in_a_log_or_a_database(suite: Suite, talk: Talk) -> None:
    token = "sk-CANARY0123456789abcdef"
    suite.model.script(Reply(status=400, error=f"wrong key {token}", when="leak"))
    await talk.chat("leak", "leaking", message_id="leak-1")
    await talk.http.get("/api/models", headers={"authorization": f"Bearer {token}", "x-other-key": token})
    async with asyncio.timeout(20):
        while not (await talk.json("GET", "/api/observability/traces?sessionId=leaking"))["items"]:
            await asyncio.sleep(0.05)
    names = {path.name: path.read_text().strip() for path in (suite.home / "credentials").iterdir()}
    secrets = {**names, "api key": suite.key, "token": token}

    logs = {path.name: path.read_text(errors="replace") for path in (suite.home / "logs").iterdir()}
    rows = "".join([text async for text in all_rows(suite)])

    assert [(name, log) for name, secret in secrets.items() for log, text in logs.items() if secret in text] == []
    assert [name for name, secret in secrets.items() if secret in rows] == []


async def sent(talk: Talk, method: str, path: str, body: bytes) -> httpx2.Response:
    headers = {"content-type": "application/json"} if body or method == "POST" else {}
    return await talk.http.request(method, path, content=body or None, headers=headers)


async def state_of(talk: Talk) -> Any:
    return [
        await talk.json("GET", path) for path in ("/api/sessions", "/api/workspaces", "/api/settings/agent-runtime")
    ]


def settled(answer: Answer) -> int:
    return sum(kind in {"tool-output-available", "tool-output-error", "tool-input-error"} for kind in answer.types)


def calls_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for message in request["messages"] for call in message.get("tool_calls") or []]


ACTS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("POST", "/api/chat", "a message"),
    ("POST", "/api/chat/crowd/stop", None),
    ("POST", "/api/chat", {"id": "crowd", "trigger": "regenerate-message"}),
    ("GET", "/api/chat/crowd/stream", None),
    ("PATCH", "/api/sessions/crowd", {"revision": 0, "archived": True}),
    ("PUT", "/api/sessions/crowd", {"revision": 0, "messages": []}),
    ("POST", "/api/chat", "a message"),
    ("GET", "/api/sessions/crowd", None),
    ("DELETE", "/api/sessions/crowd", None),
)


async def act(talk: Talk, number: int) -> httpx2.Response:
    method, path, body = ACTS[number]
    if body == "a message":
        body = {"id": "crowd", "message": {**USER, "id": new_id()}}
    return await talk.http.request(method, path, json=body)
