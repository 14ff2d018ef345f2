"""Scripted OpenAI-compatible server on loopback: `with ModelServer() as server`.

It runs in a thread of its own, so that a blocked test never blocks the model. `python -m popagent_testing.model_server`
serves in a process of its own, scripted over HTTP (`popagent_testing.model_process` does both).
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, Literal, Self

import orjson
import uvloop

from popagent_testing.embedding_vectors import embeddings_body
from popagent_testing.model_connection import Connection, Later, Request
from popagent_testing.model_playback import play
from popagent_testing.model_replies import Reply, ScriptedCall, error_body, events, usage_of

__all__ = ["Default", "LoggedRequest", "ModelList", "ModelServer", "Reply", "ScriptedCall", "last_text", "main"]

LOG_LENGTH: Final = 5_000

Outcome = Literal["running", "answered", "client-left"]


@dataclasses.dataclass(slots=True)
class LoggedRequest:
    """One request as it arrived; `at` is `time.perf_counter()` of this process."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float
    outcome: Outcome = "running"

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, slots=True)
class ModelList:
    """What `GET /v1/models` answers; `fields` adds keys to every item (`context_length`, for example)."""

    ids: tuple[str, ...] = ("scripted-model",)
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    status: int = 200
    delay_s: float = 0.0
    raw: str | None = None

    def body(self) -> bytes:
        """Return the response body."""
        if self.raw is not None:
            return self.raw.encode()
        if self.status != 200:
            return error_body(Reply(status=self.status))
        items = [{"id": name, "object": "model", "owned_by": "scripted", **self.fields} for name in self.ids]
        return orjson.dumps({"object": "list", "data": items})


Default = Reply | Callable[[dict[str, Any]], Reply]


def last_text(request: dict[str, Any], role: str | None = None) -> str:
    """Return the text of the last message, or of the last one with `role`."""
    for message in reversed(request.get("messages") or []):
        if role is None or message.get("role") == role:
            content = message.get("content")
            if isinstance(content, list):
                return "".join(str(part.get("text", "")) for part in content)
            return str(content or "")
    return ""


def echo(request: dict[str, Any]) -> Reply:
    """Answer with the last user message."""
    return Reply(text=last_text(request, "user") or "(nothing was said)")


@lru_cache(maxsize=256)
def ready_body(reply: Reply, model: str) -> tuple[bytes, bytes]:
    """Return the stream up to usage, and the rest: an instant reply is encoded once."""
    deltas, closing = events(dataclasses.replace(reply, usage=False), {"model": model})
    return b"".join([*deltas, closing[0]]), closing[-1]


class ModelServer:
    """The server and its script; every method may be called from any thread.

    Replies given to `script` are used in order, each `times` times (0: for ever); one with `when` waits for its
    request. When none fits, `default` answers: the echo of the last user message unless it is replaced.
    """

    def __init__(self, *, key: str | None = None, refuse_stream_options: bool = False, host: str = "127.0.0.1") -> None:
        self.key = key
        self.refuse_stream_options = refuse_stream_options
        self.host = host
        self.port = 0
        self.default: Default = echo
        self.models = ModelList()
        self.reads_ahead = False
        self.changed = threading.Condition()
        self.log: deque[LoggedRequest] = deque(maxlen=LOG_LENGTH)
        self.held = 0
        self._queue: list[list[Any]] = []
        self._waiting: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """The base URL, ending in /v1."""
        return f"http://{self.host}:{self.port}/v1"

    @property
    def requests(self) -> list[LoggedRequest]:
        """The chat requests so far, oldest first."""
        return [entry for entry in list(self.log) if entry.path.endswith("/chat/completions")]

    def script(self, *replies: Reply) -> None:
        """Add replies to the queue."""
        with self.changed:
            self._queue.extend([reply, reply.times] for reply in replies)

    def release(self) -> None:
        """Let every held reply go on."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        for event in list(self._waiting):
            event.set()

    def reset(self) -> None:
        """Forget script, log and model list."""
        with self.changed:
            self._queue.clear()
            self.log.clear()
            self.default = echo
            self.models = ModelList()
            self.reads_ahead = False
        self.release()

    def drop_connections(self) -> None:
        """Close every open connection, as a crashed server would."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._drop)

    async def _end(self) -> None:
        self._drop()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _drop(self) -> None:
        for connection in list(self._connections):
            connection.close()

    async def until(self, condition: Callable[[ModelServer], bool], timeout_s: float = 5.0) -> None:
        """Wait until `condition` holds; raises TimeoutError."""

        def wait() -> bool:
            with self.changed:
                return self.changed.wait_for(lambda: condition(self), timeout_s)

        if not await asyncio.to_thread(wait):
            raise TimeoutError("the scripted model server did not reach the expected state")

    def start(self, port: int = 0) -> Self:
        """Listen in a thread of its own; port 0 takes a free one."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(port, ready), name="scripted-model", daemon=True)
        self._thread.start()
        if not ready.wait(10) or self.port == 0:
            raise RuntimeError("the scripted model server did not start")
        return self

    def stop(self) -> None:
        """Close everything; may be called twice."""
        if self._thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)
        self._thread = self._loop = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def _run(self, port: int, ready: threading.Event) -> None:
        loop = uvloop.new_event_loop()
        try:
            loop.run_until_complete(self.listen(port))
            ready.set()
            loop.run_forever()
        finally:
            ready.set()
            loop.run_until_complete(self._end())
            loop.close()

    async def listen(self, port: int = 0) -> asyncio.Server:
        """Listen on the running loop."""
        self._loop = asyncio.get_running_loop()
        server = await self._loop.create_server(self._connection, self.host, port, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def _connection(self) -> Connection:
        return TrackedConnection(self._handle, self._connections)

    def _handle(self, connection: Connection, request: Request) -> Later:
        if request.path.startswith("/_script"):
            return self._control(connection, request)
        try:
            body = orjson.loads(request.body) if request.body else None
        except orjson.JSONDecodeError:
            connection.respond(400, error_body(Reply(status=400, error="body is not JSON")))
            return None
        entry = LoggedRequest(request.method, request.path, request.headers, body, time.perf_counter())
        self._note(entry)
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            return self._answer(connection, entry, 401, error_body(Reply(status=401, error="wrong key")))
        path = request.path.removeprefix("/v1")
        if path == "/chat/completions" and request.method == "POST" and isinstance(body, dict):
            return self._chat(connection, entry, body)
        if path == "/models":
            return self._list_models(connection, entry)
        if path == "/embeddings" and isinstance(body, dict):
            return self._answer(connection, entry, 200, embeddings_body(body))
        if path == "/warm-up" and self.reads_ahead:
            return self._answer(connection, entry, 200, b'{"read":true}')
        if path in {"/health", "/"}:
            return self._answer(connection, entry, 200, b'{"status":"ok"}')
        return self._answer(connection, entry, 404, error_body(Reply(status=404, error="no such route")))

    def _answer(self, connection: Connection, entry: LoggedRequest, status: int, body: bytes) -> Later:
        connection.respond(status, body)
        self._finish(entry, "answered")
        return None

    def _note(self, entry: LoggedRequest) -> None:
        with self.changed:
            self.log.append(entry)
            self.changed.notify_all()

    def _finish(self, entry: LoggedRequest, outcome: Outcome) -> None:
        with self.changed:
            entry.outcome = outcome
            self.changed.notify_all()

    def _list_models(self, connection: Connection, entry: LoggedRequest) -> Later:
        models = self.models
        if not models.delay_s:
            return self._answer(connection, entry, models.status, models.body())

        async def late() -> None:
            await asyncio.sleep(models.delay_s)
            self._answer(connection, entry, models.status, models.body())

        return late()

    def _next(self, body: dict[str, Any]) -> Reply:
        said = last_text(body)
        with self.changed:
            for at, (reply, left) in enumerate(self._queue):
                if reply.when is None or reply.when in said:
                    if left == 1:
                        del self._queue[at]
                    elif left > 1:
                        self._queue[at][1] = left - 1
                    return reply  # type: ignore[no-any-return]
        return self.default if isinstance(self.default, Reply) else self.default(body)

    def _chat(self, connection: Connection, entry: LoggedRequest, body: dict[str, Any]) -> Later:
        if self.refuse_stream_options and "stream_options" in body:
            return self._answer(connection, entry, 400, error_body(Reply(error="unknown field stream_options")))
        reply = self._next(body)
        if reply.immediate and reply.status == 200 and reply.raw is None and body.get("stream"):
            start, end = ready_body(reply, str(body.get("model", "")))
            if reply.usage and (body.get("stream_options") or {}).get("include_usage"):
                usage: dict[str, Any] = {"choices": [], "model": body.get("model"), "usage": usage_of(reply, body)}
                end = b"data: %b\n\n%b" % (orjson.dumps(usage), end)
            connection.respond_stream(start + end, reply.content_type)
            self._finish(entry, "answered")
            return None
        return self._play(connection, entry, reply, body)

    async def _play(self, connection: Connection, entry: LoggedRequest, reply: Reply, body: dict[str, Any]) -> None:
        try:
            await play(connection, reply, body, self._hold)
        except asyncio.CancelledError:
            self._finish(entry, "client-left")
            raise
        self._finish(entry, "answered" if connection.open else "client-left")

    async def _hold(self) -> None:
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            self._count_held(+1)
            await event.wait()
        finally:
            self._waiting.discard(event)
            self._count_held(-1)

    def _count_held(self, change: int) -> None:
        with self.changed:
            self.held += change
            self.changed.notify_all()

    def _control(self, connection: Connection, request: Request) -> Later:
        value: Any = orjson.loads(request.body) if request.body else None
        answer: Any = {}
        match request.method, request.path:
            case "POST", "/_script/replies":
                self.script(*(Reply.from_json(item) for item in value))
            case "PUT", "/_script/default":
                self.default = Reply.from_json(value) if value else echo
            case "PUT", "/_script/models":
                self.models = ModelList(**{**value, "ids": tuple(value["ids"])} if "ids" in value else value)
            case "POST", "/_script/release":
                self._release()
            case "POST", "/_script/drop":
                self.drop_connections()
            case "GET", "/_script/requests":
                answer = {"requests": [entry.to_json() for entry in self.requests], "held": self.held}
            case "DELETE", "/_script":
                self.reset()
            case _:
                connection.respond(404, b"{}")
                return None
        connection.respond(200, orjson.dumps(answer))
        return None


class TrackedConnection(Connection):
    """A connection that its server can find again."""

    def __init__(self, handle: Any, known: set[Connection]) -> None:
        super().__init__(handle)
        self.known = known

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register."""
        super().connection_made(transport)
        self.known.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Unregister."""
        super().connection_lost(exc)
        self.known.discard(self)


def main() -> None:
    """Serve in the foreground: prints one JSON line with the URL, and ends when standard input closes."""
    options = argparse.ArgumentParser(description="Scripted OpenAI-compatible model server.")
    options.add_argument("--port", type=int, default=0, help="0 takes a free port")
    options.add_argument("--tokens", type=int, default=0, help="answer every request with this many words at once")
    options.add_argument("--key", default=None, help="refuse requests without this key")
    options.add_argument("--until-stdin-closes", action="store_true", help="end with the program that started this")
    given = options.parse_args()
    server = ModelServer(key=given.key)
    if given.tokens:
        server.default = Reply(text=" ".join(f"word{number}" for number in range(given.tokens)))
    server.start(given.port)
    sys.stdout.write(orjson.dumps({"url": server.url, "port": server.port}).decode() + "\n")
    sys.stdout.flush()
    try:
        if given.until_stdin_closes:
            sys.stdin.read()
        else:
            threading.Event().wait()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()
