"""The programs of docs/hooks.md do what the page says."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from popagent_db.pool import Pool
from popagent_kit import sealing
from popagent_kit.ids import new_id
from popagent_kit.settings import clone_root
from popagent_local.ports import free_port
from popagent_proto.chat.hooks import HOOK_SECRET_PURPOSE, CreateHook, HookFields, HookTrialView, TryHook
from popagent_proto.chat.secrets import GetSealingKey
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from popagent_testing.suite_bus import until
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Door
from services.chat.tests.test_hooks import SECRET, SECRET_KEY

GUARD, PROGRAM, DIARY = re.findall(
    r"```python\n(.*?)```", (clone_root() or Path()).joinpath("docs/hooks.md").read_text(), re.S
)


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
    await start(hook_origins=origin)
    box = sealing.sealed((await door.ask(GetSealingKey())).public_key, SECRET, HOOK_SECRET_PURPOSE)
    fields = HookFields(name="Docs only", event="PreToolUse", url=origin + "/")

    signed = await door.ask(CreateHook(command_id=new_id(), fields=fields, sealed_secret=box))
    unsigned = await door.ask(CreateHook(command_id=new_id(), fields=fields))
    refused: HookTrialView = await door.ask(TryHook(hook_id=signed.id))
    distrusted: HookTrialView = await door.ask(TryHook(hook_id=unsigned.id))

    assert (refused.status, refused.reason) == ("denied", "Only files below docs/ may be changed.")
    assert (distrusted.status, distrusted.decision) == ("error", "deny")


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

    assert (refused.status, refused.reason) == ("denied", "Only files below docs/ may be changed.")


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
