"""Ids of another chat, of its messages, turns and specialists: told apart from ids that nobody has by nothing."""

from __future__ import annotations

from typing import Any, Final

import httpx2
import orjson
import pytest

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, ScriptedCall
from services.gateway.tests.test_every_route import EVERYTHING, ids_in, whole_request
from services.gateway.tests.test_every_route import name as name_of
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

SAID: Final = {"role": "user", "parts": [{"type": "text", "text": "x"}]}
# Method, path and body; {own} is a chat, the others are ids of another chat: its message, turn, specialist's thread.
ASKED: Final[list[tuple[str, str, Any]]] = [
    ("GET", "/api/sessions/{own}?around={message}", None),
    ("GET", "/api/sessions/{own}?before={message}", None),
    ("GET", "/api/sessions/{own}?after={message}", None),
    ("GET", "/api/sessions/{own}/search?q=heron&cursor={message}", None),
    ("GET", "/api/sessions/{own}/hooks?turnId={turn}", None),
    ("GET", "/api/sessions/{own}/hooks?cursor={turn}", None),
    ("PUT", "/api/sessions/{own}/head", {"revision": 0, "messageId": "{message}"}),
    ("PUT", "/api/sessions/{own}", {"revision": 0, "messages": [{"id": "{message}"}]}),
    ("POST", "/api/chat", {"id": "{own}", "trigger": "regenerate-message", "messageId": "{message}"}),
    ("POST", "/api/chat", {"id": "{own}", "messageId": "{message}", "message": {"id": "{message}", **SAID}}),
    ("POST", "/api/chat", {"id": "{own}", "parentId": "{message}", "message": {"id": "m-new", **SAID}}),
    ("POST", "/api/chat", {"id": "s-new", "workspaceId": "{turn}", "message": {"id": "m-new", **SAID}}),
    *(
        (method, path.replace("{id}", f"{{{kind}}}"), None)
        for kind in ("turn", "thread")
        for method, path in (
            ("GET", "/api/sessions/{id}"),
            ("GET", "/api/sessions/{id}/export"),
            ("GET", "/api/sessions/{id}/search?q=heron"),
            ("GET", "/api/sessions/{id}/hooks"),
            ("DELETE", "/api/sessions/{id}"),
            ("GET", "/api/chat/{id}/stream"),
            ("POST", "/api/chat/{id}/stop"),
            ("DELETE", "/api/workspaces/{id}"),
            ("GET", "/api/observability/traces/{id}"),
        )
    ),
]


async def two_chats(suite: Suite, talk: Talk) -> tuple[dict[str, str], dict[str, str]]:
    """Return ids of another chat than `own`, whose answer tells of a heron, and ids that nobody has."""
    own, other = new_id(), new_id()
    suite.model.script(
        Reply(text="An egret."),
        Reply(tool_calls=(ScriptedCall("agent-researcher", '{"prompt": "Look."}'),)),
        Reply(text="A heron stands there."),
        Reply(text="A heron."),
    )
    await talk.chat("Which bird?", own)
    turn = (await talk.chat("Which bird is hidden?", other)).turn_id
    stored = await talk.messages(other)
    [work] = [part["data"] for part in stored[-1]["parts"] if part["type"] == "data-agentActivity"]
    theirs = {"own": own, "other": other, "message": stored[-1]["id"], "turn": turn, "thread": work["threadId"]}
    return theirs, {"own": own, "other": other, "message": new_id(), "turn": new_id(), "thread": new_id()}


async def test_an_id_of_another_chat_is_answered_like_one_that_nobody_has(suite: Suite, talk: Talk) -> None:
    theirs, nobodys = await two_chats(suite, talk)
    own, other = theirs["own"], theirs["other"]
    stored = await talk.messages(other)
    before = await talk.json("GET", f"/api/sessions/{own}")

    for method, path, body in ASKED:
        told = [await answered(talk, ids, method, path, body) for ids in (theirs, nobodys)]
        assert told[0] == told[1], (method, path)
        assert told[0][0] < 500
        assert "heron" not in told[0][1].replace("q=heron", "")

    assert await talk.json("GET", f"/api/sessions/{own}") == before
    assert await talk.messages(other) == stored


# Whoever joins or stops what does not run is told so, whether there is such a chat or not.
NOTHING_RUNS: Final = {"GET /api/chat/{id}/stream": (204, None), "POST /api/chat/{id}/stop": (404, "nothing_runs")}


@pytest.mark.parametrize("kind", [None, "message", "turn", "thread"])
async def test_every_route_calls_an_id_that_nobody_has_not_found_and_one_of_another_kind_too(
    suite: Suite, talk: Talk, kind: str | None
) -> None:
    asked = [call for call in EVERYTHING if ids_in(call[1])]
    theirs, _ = await two_chats(suite, talk)
    stored = await talk.messages(theirs["other"])

    told = {name_of(call): await whole_request(talk.http, call, theirs[kind] if kind else new_id()) for call in asked}

    statuses = {route: (answer.status_code, code_of(answer)) for route, answer in told.items()}
    assert statuses == dict.fromkeys(statuses, (404, "not_found")) | NOTHING_RUNS
    assert [route for route, answer in told.items() if "heron" in answer.text] == []
    assert len(statuses) > 40
    assert await talk.messages(theirs["other"]) == stored


def code_of(answer: httpx2.Response) -> str | None:
    return answer.json().get("code") if answer.content else None


async def answered(talk: Talk, ids: dict[str, str], method: str, path: str, body: Any) -> tuple[int, str]:
    """Return status and body, in which the ids have their names."""
    sent = None if body is None else orjson.dumps(body).decode()
    for name, value in ids.items():
        path = path.replace(f"{{{name}}}", value)
        sent = None if sent is None else sent.replace(f"{{{name}}}", value)
    response = await talk.http.request(method, path, content=sent, headers={"content-type": "application/json"})
    text = response.text
    for name, value in ids.items():
        text = text.replace(value, name)
    return response.status_code, text
