"""Hooks through every service: added by the command line, asked in a chat, shown to the person, found in the audit."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from popagent_kit import json
from popagent_testing.model_server import Reply, ScriptedCall
from tests.suite import Suite

pytestmark = pytest.mark.full


class Guard(BaseHTTPRequestHandler):
    """Refuses everything."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"decision": "deny", "reason": "Not today."}')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


async def test_a_hook_of_the_command_line_refuses_a_call_of_a_chat_and_stands_in_its_audit(tmp_path: Path) -> None:
    guard = ThreadingHTTPServer(("127.0.0.1", 0), Guard)
    Thread(target=guard.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{guard.server_port}"
    try:
        with Suite(tmp_path, env={"POPAGENT_HOOK_ORIGINS": origin}) as suite:
            added = suite.popagent("hooks", "add", "Guard", "--event", "PreToolUse", "--to", f"{origin}/", "--json")
            tried = suite.popagent("hooks", "test", json.loads(added.stdout)["id"]).stdout
            suite.model.script(
                Reply(tool_calls=(ScriptedCall("read", '{"path": "README.md"}'),)), Reply(text="I may not.")
            )
            async with suite.talk() as talk:
                answer = await talk.chat("Read it.", "guarded")
            runs = suite.popagent("hooks", "runs", "guarded").stdout
    finally:
        guard.shutdown()
        guard.server_close()

    assert "denied, refuses" in tried
    assert answer.text == "I may not."
    [part] = [part for part in answer.message["parts"] if part["type"] == "tool-read"]
    assert part["errorText"] == "The hook “Guard” refused this: Not today."
    assert "denied" in runs
    assert "Not today." in runs
