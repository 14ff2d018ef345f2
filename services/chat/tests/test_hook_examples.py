"""The programs of docs/hooks.md do what the page says."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from popagent_db.pool import Pool
from popagent_kit import json, sealing
from popagent_kit.ids import new_id
from popagent_kit.settings import clone_root
from popagent_local.ports import free_port
from popagent_proto.chat.hooks import HOOK_SECRET_PURPOSE, CreateHook, HookFields, HookTrialView, TryHook
from popagent_proto.chat.secrets import GetSealingKey
from popagent_runs.hooks.asking import signature
from popagent_runs.hooks.rules import is_meant
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from popagent_tools.catalogue import CATALOGUE
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Door
from services.chat.tests.test_hooks import SECRET, SECRET_KEY

ROOT = clone_root() or Path()
PAGE = (ROOT / "docs/hooks.md").read_text()
GUARD, PROGRAM, DIARY = re.findall(r"```python\n(.*?)```", PAGE, re.S)
REASON = "Only files below docs/ may be changed, and not by commands."
CALLS: list[tuple[str, dict[str, object], bool]] = [
    ("write", {"path": "docs/a.md", "content": "x"}, True),
    ("edit", {"path": "docs/a.md", "old_string": "a", "new_string": "b", "replace_all": False}, True),
    ("move", {"path": "docs/a.md", "new_path": "docs/b.md"}, True),
    ("mkdir", {"path": "docs/inner"}, True),
    ("write", {"path": "notes.md", "content": "x"}, False),
    ("write", {"path": "docs/../notes.md", "content": "x"}, False),
    ("write", {"path": f"docs/{'a/' * 25}…", "content": "x"}, False),
    ("move", {"path": "docs/a.md", "new_path": "README.md"}, False),
    ("move", {"path": "README.md", "new_path": "docs/a.md"}, False),
    ("delete", {"path": "README.md", "recursive": False}, False),
    ("mkdir", {"path": "src"}, False),
    ("shell", {"command": "rm README.md", "timeout_s": 60, "background": False}, False),
    ("shellProcess", {"process": "p1", "end": False}, False),
]


def called(tool: str, arguments: dict[str, object]) -> bytes:
    return json.dumps({"input": {"callId": "call_1", "tool": tool, "arguments": arguments}})


@pytest.fixture
def running(tmp_path: Path) -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


async def serve(held: ExitStack, program: Path, code: str, *more: str) -> str:
    """Run the program until the test ends and return its origin."""
    program.write_text(code)
    port = free_port()
    process = subprocess.Popen([sys.executable, str(program), str(port), *more], env={"GUARD_SECRET": SECRET})
    held.callback(process.wait)
    held.callback(process.kill)

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await until(listens)
    return f"http://127.0.0.1:{port}"


async def test_the_guard_of_the_page_lets_docs_be_written_and_trusts_only_what_is_signed(
    running: ExitStack, tmp_path: Path, start: StartChat, door: Door, monkeypatch: pytest.MonkeyPatch, pool: Pool
) -> None:
    monkeypatch.setenv("POPAGENT_SECRET_KEY", SECRET_KEY)
    await pool.execute("delete from hooks")
    origin = await serve(running, tmp_path / "guard.py", GUARD)
    for tool, arguments, may in CALLS:
        body = called(tool, arguments)
        headers = {"x-popagent-signature": signature(SECRET, body, int(time.time()))}
        async with httpx2.AsyncClient() as client:
            said = (await client.post(origin, content=body, headers=headers)).json()
        assert said["decision"] == ("allow" if may else "deny"), (tool, arguments)
    await start(hook_origins=origin)
    box = sealing.sealed((await door.ask(GetSealingKey())).public_key, SECRET, HOOK_SECRET_PURPOSE)
    fields = HookFields(name="Docs only", event="PreToolUse", url=origin + "/")

    signed = await door.ask(CreateHook(command_id=new_id(), fields=fields, sealed_secret=box))
    unsigned = await door.ask(CreateHook(command_id=new_id(), fields=fields))
    refused: HookTrialView = await door.ask(TryHook(hook_id=signed.id))
    distrusted: HookTrialView = await door.ask(TryHook(hook_id=unsigned.id))

    assert (refused.status, refused.reason) == ("denied", REASON)
    assert (distrusted.status, distrusted.decision) == ("error", "deny")


def test_the_matcher_of_the_page_is_meant_for_every_tool_that_can_change_something() -> None:
    matchers = set(re.findall(r"--matcher '(.*?)'", PAGE))

    [matcher] = matchers
    assert f'matcher: "{matcher}"' in (ROOT / "services/gateway/ui/src/hooks/Explained.tsx").read_text()
    meant = {name for name in CATALOGUE if is_meant(matcher, name)}
    assert meant == {name for name, tool in CATALOGUE.items() if tool.access != "read"}


@pytest.mark.parametrize(("tool", "arguments", "may"), CALLS)
def test_the_program_of_the_page_lets_docs_be_written_and_nothing_else(
    tmp_path: Path, tool: str, arguments: dict[str, object], may: bool
) -> None:
    assert PROGRAM in (ROOT / "services/gateway/ui/src/hooks/Explained.tsx").read_text()
    (tmp_path / "docs-only.py").write_text(PROGRAM)

    ran = subprocess.run(
        [sys.executable, str(tmp_path / "docs-only.py")], input=called(tool, arguments), capture_output=True, check=True
    )

    assert ran.stdout == b"" if may else json.loads(ran.stdout) == {"decision": "deny", "reason": REASON}


@pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="this system has no python3 of its own")
async def test_the_program_of_the_page_says_the_same(tmp_path: Path, start: StartChat, door: Door, pool: Pool) -> None:
    await pool.execute("delete from hooks")
    (tmp_path / "hooks").mkdir()
    file = tmp_path / "hooks" / "docs-only.py"
    file.write_text(PROGRAM)
    file.chmod(0o755)
    await start(hook_folder=tmp_path / "hooks")
    fields = HookFields(name="Docs only", event="PreToolUse", kind="command", argv=["/hooks/docs-only.py"])

    hook = await door.ask(CreateHook(command_id=new_id(), fields=fields))
    refused: HookTrialView = await door.ask(TryHook(hook_id=hook.id))

    assert (refused.status, refused.reason) == ("denied", REASON)


async def test_the_diary_of_the_page_has_a_line_for_every_call(
    running: ExitStack, tmp_path: Path, start: StartChat, door: Door, model: ModelServer, pool: Pool
) -> None:
    await pool.execute("delete from hooks")
    diary = tmp_path / "diary.txt"
    origin = await serve(running, tmp_path / "diary.py", DIARY, str(diary))
    await start(hook_origins=origin)
    for event in ("PostToolUse", "PostToolUseFailure"):
        fields = HookFields.model_validate({"name": "Diary", "event": event, "url": origin})
        await door.ask(CreateHook(command_id=new_id(), fields=fields))
    model.script(
        Reply(tool_calls=(ScriptedCall("read", '{"path": "README.md"}'), ScriptedCall("read", '{"path": "none"}'))),
        Reply(text="Done."),
    )
    session = new_id()

    await door.say("Look.", session)

    assert sorted(diary.read_text().splitlines()) == [
        f"{session} PostToolUse read",
        f"{session} PostToolUseFailure read",
    ]
