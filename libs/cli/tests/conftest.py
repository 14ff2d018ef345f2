"""A peer that speaks the documented HTTP API with scripted answers, behind a real server on a free port."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from click.testing import CliRunner, Result
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from popagent_cli.main import main
from popagent_cli.routes import VERBS
from popagent_kit import json
from popagent_uistream import chunks as c
from popagent_uistream.chunks import Chunk
from popagent_uistream.encode import DONE, HEADERS, HEARTBEAT, encode
from popagent_uistream.reducer import MessageReducer
from popagent_uistream.snapshot import snapshot_chunks
from popagent_uistream.state import StreamState

EXAMPLES = Path(__file__).parents[3] / "proto" / "examples"
# Views that the routes answer with, by command.
VIEWS = {
    "stop": "TurnView",
    "sessions list": "SessionList",
    "sessions new": "SessionView",
    "sessions show": "SessionView",
    "sessions shorten": "SessionView",
    "sessions find": "MessageHits",
    "sessions branch": "SessionView",
    "sessions rename": "SessionView",
    "sessions delete": "DeletedView",
    "workspace list": "WorkspaceList",
    "workspace add": "WorkspaceView",
    "workspace candidates": "WorkspaceCandidates",
    "workspace rename": "WorkspaceView",
    "workspace delete": "DeletedView",
    "workspace delete-sessions": "JobView",
    "jobs": "JobList",
    "job-show": "JobView",
    "agents": "AgentList",
    "agents patch": "AgentView",
    "agent-health": "AgentHealthView",
    "skill-list": "SkillList",
    "skill-import": "SkillView",
    "skill-enable": "SkillView",
    "skill-delete": "DeletedView",
    "company": "CompanyView",
    "hooks": "HookList",
    "hooks add": "HookView",
    "hooks patch": "HookView",
    "hooks delete": "DeletedView",
    "hooks test": "HookTrialView",
    "hooks runs": "HookRunList",
    "task-list": "TaskList",
    "task-create": "TaskSummary",
    "task-show": "TaskView",
    "task-show --all": "TranscriptPage",
    "task-cancel": "TaskSummary",
    "task-resolve": "TaskSummary",
    "task-retry": "TaskSummary",
    "task-delete": "DeletedView",
    "schedule-list": "ScheduleList",
    "schedule-create": "ScheduleView",
    "schedule-preview": "CronPreview",
    "schedule-patch": "ScheduleView",
    "schedule-delete": "DeletedView",
    "schedule-run": "ScheduleRunView",
    "schedule-history": "ScheduleRunList",
    "channel-list": "ChannelList",
    "channel-settings": "ChannelSettingsView",
    "channel-settings --auto-reply": "ChannelSettingsView",
    "channel-tail": "ChannelHistory",
    "channel-post": "ChannelMessage",
    "channel-edit": "ChannelMessage",
    "channel-delete": "ChannelMessage",
    "channel-cancel": "ChannelMessage",
    "channel-read": "ChannelView",
    "docs-list": "DocsTree",
    "docs-list --deleted": "DeletedPages",
    "docs-search": "DocHits",
    "docs-import": "JobView",
    "docs-show": "PageView",
    "docs-show --version": "PageVersionView",
    "docs-create": "PageSummary",
    "docs-write": "PageSummary",
    "docs-move": "MovedView",
    "docs-mkdir": "FolderView",
    "docs-delete": "PageDeletedView",
    "docs-delete --folder": "FolderDeletedView",
    "docs-history": "PageHistory",
    "docs-restore": "PageSummary",
    "models": "ModelsView",
    "models connection": "ModelConnectionView",
    "models connect": "ModelConnectionView",
    "models disconnect": "ModelConnectionView",
    "models test": "ConnectionTestView",
    "models detect": "DetectedServers",
    "settings-show agent-runtime": "AgentRuntimeView",
    "settings-patch agent-runtime": "AgentRuntimeView",
    "health": "SuiteHealthView",
    "traces list": "TraceList",
    "traces show": "TraceView",
    "traces store": "StoreHealthView",
}
OVERRIDES: dict[str, dict[str, Any]] = {
    "SessionView": {
        "messages": [
            {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]},
            {"id": "m2", "role": "assistant", "parts": [{"type": "text", "text": "Good day"}]},
        ],
        "previousCursor": None,
        "nextCursor": None,
        "archivedAt": None,
        "runningTurnId": None,
    },
    "SessionList": {"nextCursor": None},
    "MessageHits": {"nextCursor": None},
    "WorkspaceList": {"nextCursor": None},
    "TraceList": {"nextCursor": None},
    "AgentList": {"nextCursor": None},
    "SkillList": {"nextCursor": None},
    "HookList": {"nextCursor": None},
    "TaskList": {"nextCursor": None},
    "TranscriptPage": {"previousCursor": None},
    "TaskView": {"state": "completed", "lastErrorClass": None, "interruptedAt": None, "resolution": None},
    "HookRunList": {"nextCursor": None},
    "ScheduleRunList": {"nextCursor": None},
    "DocsTree": {"nextCursor": None},
    "DeletedPages": {"nextCursor": None},
    "PageHistory": {"nextCursor": None},
    "JobView": {"title": "", "about": None, "result": None},
    "ConnectionTestView": {"ok": True, "class": "ok"},
}


def view(name: str, **changes: Any) -> dict[str, Any]:
    """A view as the contracts' golden example shows it, in a sensible state, with `changes`."""
    example: dict[str, Any] = json.loads((EXAMPLES / f"{name}.json").read_bytes())
    return {**example, **OVERRIDES.get(name, {}), **changes}


@dataclass
class Asked:
    method: str
    path: str
    verb: str | None
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class CutOffError(Exception):
    """Leaves an answer unfinished: the server then closes the connection."""


@dataclass
class Script:
    """One turn. `cuts` are, connection by connection, the chunks after which the line breaks."""

    chunks: list[Chunk]
    turn_id: str | None = None
    cuts: list[int] = field(default_factory=list)
    snapshot_behind: int = 0
    """Chunks that a snapshot lacks of what the client has seen."""
    hold_at: int | None = None
    """Waits before this chunk until it is stopped."""
    over_when_cut: bool = False
    """The turn has ended when the client comes back."""
    stopped: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)
    seen: int = 0

    def message(self, count: int | None = None) -> dict[str, Any]:
        return MessageReducer().apply_all(self.chunks[:count])

    async def stream(self, first: list[Chunk], position: int) -> AsyncIterator[bytes]:
        cut = self.cuts.pop(0) if self.cuts else None
        state = StreamState()
        for chunk in self.chunks[:position]:
            state.accept(chunk)
        for chunk in first:
            yield encode(chunk)
        for index in range(position, len(self.chunks)):
            if cut is not None and index >= cut:
                raise CutOffError
            if index == self.hold_at:
                self.held.set()
                while not self.stopped.is_set():
                    yield HEARTBEAT
                    await asyncio.sleep(0.02)
                for chunk in state.end(c.abort(reason="stopped")):
                    yield encode(chunk)
                yield DONE
                return
            self.seen = max(self.seen, index + 1)
            yield encode(state.accept(self.chunks[index]))
        yield DONE


class Peer:
    """`answers[verb]` replaces what a route answers with: JSON, or (status, JSON, headers), or a function of Asked."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, Any] = {}
        self.key: str | None = None
        self.script = Script([])
        self.url = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        body = await request.body()
        asked = Asked(
            request.method,
            request.url.path,
            verb_of(request.method, request.url.path),
            dict(request.query_params),
            dict(request.headers),
            json.loads(body) if body.startswith((b"{", b"[")) else body or None,
        )
        self.asked.append(asked)
        await self._answer(asked)(scope, receive, send)

    def _answer(self, asked: Asked) -> Response:
        if self.key is not None and asked.headers.get("x-popagent-key") != self.key:
            return reply({"error": "The key is missing or wrong.", "code": "unauthorized"}, 401)
        if asked.verb is None:
            return reply({"error": "There is no such route.", "code": "not_found"}, 404)
        scripted = self.answers.get(asked.verb)
        if callable(scripted):
            scripted = scripted(asked)
        if isinstance(scripted, Response):
            return scripted
        if isinstance(scripted, tuple):
            return reply(*scripted)
        if scripted is not None:
            return reply(scripted)
        return self._chat(asked) or reply(view(VIEWS[asked.verb]) if asked.verb in VIEWS else {"openapi": "3.1.0"})

    def _chat(self, asked: Asked) -> Response | None:
        script = self.script
        if asked.verb == "chat":
            script.turn_id = asked.headers["idempotency-key"]
            return self._streaming(script.stream([], 0))
        if asked.verb == "watch":
            if script.over_when_cut or not script.chunks:
                return Response(status_code=204)
            position = max(0, script.seen - script.snapshot_behind)
            first = snapshot_chunks(script.message(position))
            return self._streaming(script.stream(first, position))
        if asked.verb == "stop":
            script.stopped.set()
        if asked.verb == "task-show --follow":
            return told(("task", 1, view("TaskView")))
        if asked.verb == "events":
            text = b'event: ready\nid: a-1\ndata: {"topics":["turns"]}\n\n'
            text += b'event: turns\nid: a-2\ndata: {"name":"turns-ended","event":{"state":"completed"}}\n\n'
            return StreamingResponse(iter([text[:30], text[30:]]), headers={"content-type": "text/event-stream"})
        return None

    def _streaming(self, content: AsyncIterator[bytes]) -> Response:
        headers = {**HEADERS, "x-popagent-turn-id": self.script.turn_id or "t"}
        return StreamingResponse(content, headers=headers)


def told(*events: tuple[str, int, Any]) -> Response:
    """A stream of these events, name, id and data, that ends behind them."""
    said = [f"event: {name}\nid: {place}\ndata: {json.dumps(what).decode()}\n\n" for name, place, what in events]
    return StreamingResponse(iter(said), headers={"content-type": "text/event-stream"})


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value), status, headers, media_type="application/json")


def verb_of(method: str, path: str) -> str | None:
    for (verb_method, template), verb in VERBS.items():
        if method == verb_method and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return verb
    return None


class Server:
    """A real server for the whole run; `peer` is who answers at present."""

    def __init__(self) -> None:
        self.peer = Peer()
        self.server = uvicorn.Server(
            uvicorn.Config(
                self.answer,
                host="127.0.0.1",
                port=0,
                log_level="critical",
                lifespan="off",
                ws="none",
                interface="asgi3",
            )
        )
        self.listening = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.serve()))

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.peer(scope, receive, send)

    async def serve(self) -> None:
        task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.005)
        self.listening.set()
        await task


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    made = Server()
    made.thread.start()
    assert made.listening.wait(10)
    yield made
    made.peer.script.stopped.set()
    made.server.should_exit = made.server.force_exit = True
    made.thread.join(10)


@pytest.fixture
def peer(server: Server) -> Iterator[Peer]:
    server.peer = Peer()
    server.peer.url = f"http://127.0.0.1:{server.server.servers[0].sockets[0].getsockname()[1]}"
    yield server.peer
    server.peer.script.stopped.set()


@pytest.fixture
def lossy_url(peer: Peer) -> Iterator[str]:
    """A way to the peer on which the first request arrives and its reply is lost."""
    there = urlsplit(peer.url)
    listener = socket.create_server(("127.0.0.1", 0))

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def lose_first() -> None:
        with contextlib.suppress(OSError):
            for number in itertools.count():
                near = listener.accept()[0]
                far = socket.create_connection((there.hostname, there.port))
                threading.Thread(target=carry, args=(near, far), daemon=True).start()
                if number == 0:
                    far.recv(1)
                    near.shutdown(socket.SHUT_RDWR)
                    continue
                threading.Thread(target=carry, args=(far, near), daemon=True).start()

    threading.Thread(target=lose_first, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where nothing runs, with no settings from outside."""
    for name in ("POPAGENT_API_KEY", "POPAGENT_HOST", "POPAGENT_PORT", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


Run = Callable[..., Result]


@pytest.fixture
def run(peer: Peer, home: Path) -> Run:
    """Return `run("sessions", "list", stdin="")`: the command in this process, against the peer."""

    def invoke(*args: str, stdin: str | bytes = "") -> Result:
        result = CliRunner().invoke(main, ["--url", peer.url, *args], input=stdin, prog_name="popagent")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke
