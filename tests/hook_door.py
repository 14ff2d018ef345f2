"""A server that hooks of the shared suite may be posted to: it answers what a test says, and keeps what it was told."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

from popagent_kit import json


def denies(reason: str) -> bytes:
    """Return the answer that refuses."""
    return json.dumps({"decision": "deny", "reason": reason})


class HookDoor:
    """`answers` maps a path to a body; any other path agrees with an empty 200."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        self.told: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def forget(self) -> None:
        """Agree with everything again."""
        self.answers.clear()
        self.told.clear()


def _handler_of(door: HookDoor) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            door.told.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(door.answers.get(self.path, b""))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
