from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest
from fastapi.routing import APIRoute
from starlette.routing import Route

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_gateway.api import make_api
from popagent_gateway.wiring import Gateway
from popagent_kit.clock import now
from popagent_kit.errors import ConflictError, NotFoundError, RateLimitedError, RevisionConflictError, UnavailableError
from popagent_proto.chat import models, sessions, settings, turns, workspaces
from popagent_proto.observability import GetStoreHealth, GetTrace, ListTraces, StoreHealthView, TraceList
from popagent_testing.runtime_settings import agent_runtime

from .conftest import HERE, Owner, make_settings, own_health

KEY = "the-key-of-this-test"
# Without the key these answer, and nothing else does; what they answer is for test_pages.
PAGES = {f"/assets/{'0' * 32}", "/favicon.ico", "/favicon.svg", f"/{'0' * 32}"}
ODD_IDS = [
    *("a.b", "a*", ">", "a%20b", "a%0d%0ab", "a%2fb", "%2e%2e%2fetc", "%252e%252e", "a" * 65),
    *("a%00b", "ä", "a;b", "$JS", "a%3eb", "a%0a", "%7f"),
]
OTHER_SHAPES: list[tuple[str, str, Any, str | None]] = [
    ("POST", "/api/sessions", {"title": ""}, "title"),
    ("POST", "/api/sessions", {"title": "x" * 201}, "title"),
    ("POST", "/api/sessions", {"workspaceId": "no such.id"}, "workspaceId"),
    ("POST", "/api/sessions", {"workspace_id": 5}, "workspace_id"),
    ("POST", "/api/sessions", {"owner": "me"}, "owner"),
    ("POST", "/api/sessions", [], None),
    ("POST", "/api/sessions", None, "body"),
    ("POST", "/api/sessions", {"workspace_id": "w1"}, "workspace_id"),
    ("PATCH", "/api/sessions/s1", {"revision": True}, "revision"),
    ("PATCH", "/api/sessions/s1", {"revision": 1.0}, "revision"),
    ("PATCH", "/api/sessions/s1", {"revision": "1"}, "revision"),
    ("PATCH", "/api/sessions/s1", {"revision": 1, "archived": 0}, "archived"),
    ("PATCH", "/api/sessions/s1", {"revision": 1, "archived": "false"}, "archived"),
    ("PATCH", "/api/settings/agent-runtime", {"supervisor_max_steps": 5}, "supervisor_max_steps"),
    ("PATCH", "/api/settings/agent-runtime", {"supervisorMaxSteps": 1e30}, "supervisorMaxSteps"),
    ("POST", "/api/chat/s1/stop", {"turnId": "t1"}, "body"),
    ("DELETE", "/api/sessions/s1", [], "body"),
    ("GET", "/api/sessions?workspace_id=w1", None, "workspace_id"),
    ("GET", "/api/sessions?limit=1&limit=2", None, "limit"),
    ("GET", "/api/models?refresh=1", None, "refresh"),
    ("PATCH", "/api/sessions/s1?revision=1", {"revision": 1}, "revision"),
    ("PUT", "/api/sessions/s1", {}, "revision"),
    ("PUT", "/api/sessions/s1", {"revision": -1}, "revision"),
    ("PUT", "/api/sessions/s1", {"revision": 1, "messages": [{"role": "user"}]}, "messages.0.id"),
    ("PATCH", "/api/sessions/s1", {"revision": "one"}, "revision"),
    ("PUT", "/api/sessions/s1/head", {"revision": 1}, "messageId"),
    ("PUT", "/api/sessions/s1/head", {"messageId": "m1"}, "revision"),
    ("POST", "/api/workspaces", {"name": "x"}, "path"),
    ("PATCH", "/api/workspaces/w1", {"name": "x"}, "revision"),
    ("PATCH", "/api/workspaces/w1", {"revision": 0}, "name"),
    ("PATCH", "/api/workspaces/w1", {"revision": 0, "name": "a\nb"}, "name"),
    ("PATCH", "/api/workspaces/w1", {"revision": 0, "name": "x" * 121}, "name"),
    ("PATCH", "/api/workspaces/w1", {"revision": 0, "name": "x", "path": "y"}, "path"),
    ("PATCH", "/api/agents/researcher", {"name": "Scout"}, "revision"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "instructions": " "}, "instructions"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "tools": ["read", "read"]}, "tools"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "tools": [5]}, "tools.0"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "sourceUrl": "javascript:1"}, "sourceUrl"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "workspaceAccess": "root"}, "workspaceAccess"),
    ("PATCH", "/api/agents/researcher", {"revision": 1, "id": "x"}, "id"),
    ("POST", "/api/hooks", {"event": "PreToolUse", "url": "http://x"}, "name"),
    ("POST", "/api/hooks", {"name": "a\nb", "event": "Stop", "url": "http://x"}, "name"),
    ("POST", "/api/hooks", {"name": "a", "event": "Sometimes", "url": "http://x"}, "event"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "x" * 2_001}, "url"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "kind": "command", "argv": ["a"] * 33}, "argv"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "kind": "command", "argv": "a b"}, "argv"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "kind": "command", "argv": ["a\u0000b"]}, "argv.0"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "timeoutMs": 99}, "timeoutMs"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "timeoutMs": 30_001}, "timeoutMs"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "orderIndex": -1}, "orderIndex"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "onFailure": "retry"}, "onFailure"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "kind": "prompt"}, "kind"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "matcher": "x" * 201}, "matcher"),
    ("POST", "/api/hooks", {"name": "a", "event": "Stop", "url": "http://x", "secret": " x"}, "secret"),
    ("PATCH", "/api/hooks/h1", {"enabled": False}, "revision"),
    ("PATCH", "/api/hooks/h1", {"revision": 1, "enabled": "no"}, "enabled"),
    ("POST", "/api/hooks/h1/test", {"input": {}}, "body"),
    ("GET", "/api/sessions/s1/hooks?limit=201", None, "limit"),
    ("GET", "/api/sessions/s1/hooks?turnId=a.b", None, "turnId"),
    ("PATCH", "/api/settings/agent-runtime", {"supervisorMaxSteps": 129}, "supervisorMaxSteps"),
    ("PATCH", "/api/settings/agent-runtime", {"modelSource": "cloud"}, "modelSource"),
    ("GET", "/api/sessions?limit=201", None, "limit"),
    ("GET", "/api/sessions?q=", None, "q"),
    ("GET", "/api/sessions?q=%20%E3%80%80", None, "q"),
    ("GET", f"/api/sessions?q={'x' * 201}", None, "q"),
    ("GET", "/api/sessions?q=a%00b", None, "query"),
    ("GET", "/api/sessions/s1/search", None, "q"),
    ("GET", "/api/sessions/s1/search?q=%09", None, "q"),
    ("GET", "/api/sessions/s1/search?q=x&limit=201", None, "limit"),
    ("GET", "/api/sessions?limit=x", None, "limit"),
    ("GET", "/api/sessions?workspaceid=w1", None, "workspaceid"),
    ("GET", "/api/sessions?workspaceId=a.b", None, "workspaceId"),
    ("GET", "/api/sessions/s1?limit=0", None, "limit"),
    ("GET", "/api/observability/traces?status=fine", None, "status"),
    ("POST", "/api/tasks", {}, "prompt"),
    ("POST", "/api/tasks", {"prompt": " "}, "prompt"),
    ("POST", "/api/tasks", {"prompt": "x" * 100_001}, "prompt"),
    ("POST", "/api/tasks", {"prompt": "x", "workspaceId": "a.b"}, "workspaceId"),
    ("POST", "/api/tasks", {"prompt": "x", "maxAttempts": 11}, "maxAttempts"),
    ("POST", "/api/tasks", {"prompt": "x", "maxAttempts": "3"}, "maxAttempts"),
    ("POST", "/api/tasks", {"prompt": "x", "priority": -11}, "priority"),
    ("POST", "/api/tasks", {"prompt": "x", "source": "self-update"}, "source"),
    ("POST", "/api/tasks", {"prompt": "x", "workflow": True}, "workflow"),
    ("POST", "/api/tasks/t1/cancel", {"now": True}, "body"),
    ("POST", "/api/tasks/t1/resolve", {}, "evidence"),
    ("POST", "/api/tasks/t1/resolve", {"evidence": "x" * 4_001}, "evidence"),
    ("GET", "/api/tasks?state=failed,done", None, "state"),
    ("GET", "/api/tasks?state=failed&state=queued", None, "state"),
    ("GET", "/api/tasks?source=system", None, "source"),
    ("GET", "/api/tasks?limit=201", None, "limit"),
    ("GET", "/api/tasks/t1?limit=257", None, "limit"),
    ("GET", "/api/tasks/t1/transcript?after=-1", None, "after"),
    ("GET", "/api/tasks/t1/transcript?before=x", None, "before"),
    ("GET", "/api/events", None, "topics"),
    ("GET", "/api/events?topics=", None, "topics"),
    ("GET", "/api/events?topics=sessions,secrets", None, "topics"),
]
SUMMARY: dict[str, Any] = {
    "id": "s1",
    "title": "Hello",
    "title_locked": False,
    "workspace_id": "w1",
    "archived_at": None,
    "revision": 3,
    "created_at": now(),
    "updated_at": now(),
    "running_turn_id": None,
}
VIEW = sessions.SessionView(**SUMMARY, messages=[{"id": "m1", "role": "user", "parts": []}], previous_cursor=None)
WORKSPACE = workspaces.WorkspaceView(id="w1", name="Mine", path="mine", is_default=True, created_at=now(), revision=0)
ROW = workspaces.WorkspaceRow(**WORKSPACE.model_dump(), is_repository=True, branch="main")
RUNTIME = agent_runtime()


def routes() -> list[tuple[str, str]]:
    """Every (method, path) of the application, ids filled in."""
    found = []
    for route in make_api().routes:
        assert isinstance(route, Route | APIRoute), f"{route!r} is not guarded by this test"
        found += [(method, re.sub(r"\{[^}]+\}", "0" * 32, route.path)) for method in sorted(route.methods or ())]
    return found


async def test_every_route_but_the_public_pages_wants_the_key(bus: Bus, pool: Pool) -> None:
    gateway = Gateway(make_settings(api_key=KEY), bus, pool, own_health)
    transport = httpx2.ASGITransport(gateway.app)

    async with httpx2.AsyncClient(transport=transport, base_url=HERE) as http:
        without = {call: (await http.request(*call)).status_code for call in routes()}
        loosely = {
            spelled: (await http.request(method, httpx2.URL(HERE, raw_path=spelled.encode()))).status_code
            for method, path in routes()
            if path.startswith("/api/")
            for spelled in (path.upper(), f"/{path}", f"/.{path}", f"{path}/", f"/x/..{path}", f"/%61{path[2:]}")
        }

    open_to_all = {call for call, status in without.items() if status != 401}
    assert open_to_all == {(method, path) for method in ("GET", "HEAD") for path in PAGES}
    assert set(loosely.values()) == {401}
    assert len(without) - len(open_to_all) > 20


async def test_models_sessions_workspaces_and_settings_are_read_from_their_owner(
    http: httpx2.AsyncClient, chat: Owner
) -> None:
    chat.answer(models.ListModels, models.ModelsView(models=["a"], context_windows={"a": 8_192}, default_model="a"))
    chat.answer(sessions.ListSessions, sessions.SessionList(items=[sessions.SessionItem(**SUMMARY)], next_cursor="n"))
    chat.answer(sessions.GetSession, VIEW)
    chat.answer(workspaces.ListWorkspaces, workspaces.WorkspaceList(items=[ROW]))
    chat.answer(settings.GetAgentRuntime, RUNTIME)

    catalogue = (await http.get("/api/models")).json()
    listed = await http.get("/api/sessions?archived=true&workspaceId=w1&limit=7&cursor=abc")
    asked_list = chat.last()
    loaded = await http.get("/api/sessions/s1?before=m9&limit=2")
    asked_page = chat.last()
    registered = (await http.get("/api/workspaces")).json()
    runtime = (await http.get("/api/settings/agent-runtime")).json()

    assert (catalogue["models"], catalogue["contextWindows"], catalogue["defaultModel"]) == (["a"], {"a": 8_192}, "a")
    assert asked_list == sessions.ListSessions(archived=True, workspace_id="w1", limit=7, cursor="abc")
    assert listed.json()["items"][0]["workspaceId"] == "w1"
    assert listed.json()["nextCursor"] == "n"
    assert asked_page == sessions.GetSession(session_id="s1", before="m9", limit=2)
    assert loaded.json() == VIEW.wire()
    assert registered == {"items": [ROW.wire()], "nextCursor": None, "root": None}
    assert runtime == RUNTIME.wire()


async def test_changes_reach_their_owner_with_an_id_of_their_own(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(sessions.CreateSession, VIEW)
    chat.answer(sessions.SaveSession, VIEW)
    chat.answer(sessions.PatchSession, VIEW)
    chat.answer(sessions.DeleteSession, sessions.SessionDeletedView(id="s1"))
    chat.answer(workspaces.RegisterWorkspace, WORKSPACE)
    chat.answer(workspaces.PatchWorkspace, WORKSPACE)
    chat.answer(workspaces.DeleteWorkspace, sessions.DeletedView(id="w1"))
    chat.answer(settings.PatchAgentRuntime, RUNTIME)
    key = {"idempotency-key": "once-1"}

    created = await http.post("/api/sessions", json={"title": "T", "workspaceId": "w1"}, headers=key)
    create = chat.last()
    await http.post("/api/sessions", json={})
    create_again = chat.last()
    await http.put("/api/sessions/s1", json={"revision": 3, "messages": [{"id": "m1", "role": "user", "parts": []}]})
    save = chat.last()
    await http.patch("/api/sessions/s1", json={"revision": 3, "archived": True})
    patch = chat.last()
    deleted = await http.delete("/api/sessions/s1")
    registered = await http.post("/api/workspaces", json={"name": "Mine", "path": "mine"})
    await http.patch("/api/workspaces/w1", json={"revision": 2, "name": "Other"})
    renamed = chat.last()
    forgotten = await http.delete("/api/workspaces/w1")
    forget = chat.last()
    await http.patch("/api/settings/agent-runtime", json={"defaultModel": None, "supervisorMaxSteps": 64})
    tuned = chat.last()

    assert created.status_code == registered.status_code == 201
    assert create.command_id == "once-1"
    assert create.body == sessions.CreateSessionBody(title="T", workspace_id="w1")
    assert create_again.command_id not in ("", "once-1")
    assert (save.session_id, [kept.id for kept in save.body.messages]) == ("s1", ["m1"])
    assert (patch.body.archived, patch.body.title) == (True, None)
    assert deleted.json() == {"id": "s1", "deleted": True}
    assert (renamed.workspace_id, renamed.body) == ("w1", workspaces.PatchWorkspaceBody(revision=2, name="Other"))
    assert (forget.workspace_id, forgotten.json()) == ("w1", {"id": "w1", "deleted": True})
    assert (tuned.body.supervisor_max_steps, tuned.body.model_fields_set) == (
        64,
        {"default_model", "supervisor_max_steps"},
    )


async def test_traces_are_read_from_observability(http: httpx2.AsyncClient, observability: Owner) -> None:
    observability.answer(ListTraces, TraceList(items=[]))
    observability.answer(GetTrace, NotFoundError())
    observability.answer(
        GetStoreHealth,
        StoreHealthView(ready=True, spans=1, logs=2, size_bytes=3, oldest_at=None, newest_at=None, pending_batches=0),
    )

    listed = await http.get("/api/observability/traces?sessionId=s1&status=ok")
    asked = observability.last()
    missing = await http.get(f"/api/observability/traces/{'a' * 32}")
    odd = await http.get("/api/observability/traces/A")
    health = await http.get("/api/observability/health")

    assert listed.json() == {"items": [], "nextCursor": None}
    assert (asked.session_id, asked.status) == ("s1", "ok")
    assert (missing.status_code, odd.status_code) == (404, 404)
    assert health.json()["sizeBytes"] == 3


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (RevisionConflictError(extra={"session": VIEW.wire()}), 409),
        (ConflictError("A turn runs."), 409),
        (NotFoundError(), 404),
        (UnavailableError("Gone.", retry_after_s=2.3), 503),
        (RateLimitedError("Slow down."), 429),
    ],
)
async def test_an_owners_refusal_is_told_in_one_shape(
    http: httpx2.AsyncClient, chat: Owner, error: Any, status: int
) -> None:
    chat.answer(sessions.PatchSession, error)

    answer = await http.patch("/api/sessions/s1", json={"revision": 1})

    assert answer.status_code == status
    assert answer.json() == {**error.extra, "error": error.message, "code": error.code}
    assert answer.headers.get("retry-after") == {503: "3", 429: "1"}.get(status)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/sessions/{}"),
        ("PUT", "/api/sessions/{}"),
        ("PATCH", "/api/sessions/{}"),
        ("DELETE", "/api/sessions/{}"),
        ("GET", "/api/chat/{}/stream"),
        ("POST", "/api/chat/{}/stop"),
        ("GET", "/api/observability/traces/{}"),
        ("PATCH", "/api/agents/{}"),
    ],
)
async def test_ids_that_no_store_could_hold_are_404_and_are_never_asked_for(
    http: httpx2.AsyncClient, chat: Owner, method: str, path: str
) -> None:
    body = {"json": {"revision": 1}} if method in {"PUT", "PATCH"} else {}

    answers = {odd: await http.request(method, path.format(odd), **body) for odd in ODD_IDS}

    assert {odd: (a.status_code, a.json()["code"]) for odd, a in answers.items()} == dict.fromkeys(
        ODD_IDS, (404, "not_found")
    )
    assert chat.asked == []


async def test_another_shape_is_422_and_names_the_field_as_it_is_on_the_wire(
    http: httpx2.AsyncClient, chat: Owner
) -> None:
    answers = []
    for method, path, body, _ in OTHER_SHAPES:
        content = {} if method == "GET" or body is None else {"json": body}
        answers.append(await http.request(method, path, **content))

    told = [(answer.status_code, answer.json()["code"], answer.json().get("field")) for answer in answers]
    assert told == [(422, "invalid_input", field) for *_, field in OTHER_SHAPES]
    assert all(answer.json()["error"] for answer in answers)
    assert not any("Input should" in answer.json()["error"] for answer in answers)
    assert chat.asked == []


async def test_a_bound_is_told_whole_and_in_our_own_words(http: httpx2.AsyncClient, chat: Owner) -> None:
    steps = await http.patch("/api/settings/agent-runtime", json={"supervisorMaxSteps": 0})
    limit = await http.get("/api/sessions?limit=1000")
    text = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": ""}]}
    part = await http.post("/api/chat", json={"id": "s1", "message": text})
    empty = await http.post("/api/sessions", headers={"content-type": "application/json"})

    assert [answer.json()["error"] for answer in (steps, limit, part, empty)] == [
        "supervisorMaxSteps must be between 1 and 128",
        "limit must be between 1 and 200",
        "message.parts.0.text must have between 1 and 200,000 characters",
        "A body is required: one JSON object.",
    ]
    assert chat.asked == []


async def test_two_idempotency_keys_are_refused(http: httpx2.AsyncClient, chat: Owner) -> None:
    keys = [("idempotency-key", "k1"), ("idempotency-key", "k2")]

    answer = await http.post("/api/sessions", json={}, headers=keys)

    assert (answer.status_code, answer.json()["field"]) == (422, "idempotency-key")
    assert chat.asked == []


async def test_an_idempotency_key_that_is_no_id_is_422(http: httpx2.AsyncClient, chat: Owner) -> None:
    keys = ("", "a b", "a.b", "x" * 65, "a>")

    answers = [await http.post("/api/sessions", json={}, headers={"idempotency-key": key}) for key in keys]

    assert {(answer.status_code, answer.json()["field"].lower()) for answer in answers} == {(422, "idempotency-key")}
    assert chat.asked == []


async def test_unknown_routes_and_methods_are_json_too(http: httpx2.AsyncClient) -> None:
    unknown = [
        await http.get(path)
        for path in ("/api/nothing", "/api", "/api/sessions/", "/api/docs", "/assets/nothing", "/a%2f%2fb")
    ]
    wrong = await http.delete("/api/sessions")

    assert {answer.status_code for answer in unknown} == {404}
    assert unknown[0].json() == {"error": "There is no such route.", "code": "not_found"}
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert set(wrong.headers["allow"].split(", ")) == {"GET", "POST"}


async def test_an_owner_that_is_away_is_503_and_says_when_to_come_back(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/api/models")

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert answer.headers["retry-after"] == "1"
    assert "chat" in answer.json()["error"]


async def test_a_defect_is_500_in_the_same_shape_and_tells_nothing_of_its_inside(
    http: httpx2.AsyncClient, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken() -> None:
        raise RuntimeError("the password is hunter2hunter2")

    gateway.api.add_api_route("/api/broken", broken)

    answer = await http.get("/api/broken")

    assert answer.status_code == 500
    assert (answer.json()["code"], len(answer.json()["traceId"])) == ("internal", 32)
    assert "hunter2" not in answer.text
    assert "defect" in caplog.text


async def test_every_answer_forbids_what_a_browser_might_do_with_it(http: httpx2.AsyncClient) -> None:
    page = await http.get("/")
    data = await http.get("/api/nothing")

    for answer in (page, data):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "unsafe" not in answer.headers["content-security-policy"]
    assert data.headers["cache-control"] == "no-store"


def test_the_chat_routes_exist() -> None:
    assert {
        ("POST", "/api/chat"),
        ("GET", f"/api/chat/{'0' * 32}/stream"),
        ("POST", f"/api/chat/{'0' * 32}/stop"),
    } <= set(routes())
    assert turns.StartTurn.subject.startswith("popagent.chat.cmd.")
