"""Hooks that are programs: each a real one, in a real sandbox, whose policy decides when it misbehaves."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import (
    CreateHook,
    HookChanges,
    HookFields,
    HookTrialView,
    HookView,
    ListHookRuns,
    ListHooks,
    TryHook,
    UpdateHook,
)
from popagent_runs.hooks.commanding import LONGEST_OUTPUT, HookCommands
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, refusal

pytestmark = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "hooks"
    made.mkdir()
    return made


@pytest.fixture(autouse=True)
async def chat(folder: Path, start: StartChat, pool: Pool) -> Chat:
    await pool.execute("delete from hooks")
    return await start(hook_folder=folder)


class Programs:
    """Makes hooks of shell programs in the folder."""

    def __init__(self, door: Door, folder: Path) -> None:
        self._door = door
        self._folder = folder

    async def add(self, name: str, program: str, *more: str, event: str = "PreToolUse", **fields: Any) -> HookView:
        file = self._folder / name
        file.write_text(f"#!/bin/sh\n{program}\n")
        file.chmod(0o755)
        given = {"name": name, "event": event, "kind": "command", "argv": [f"/hooks/{name}", *more], **fields}
        made = HookFields.model_validate(given, by_name=True)
        view: HookView = await self._door.ask(CreateHook(command_id=new_id(), fields=made))
        return view

    async def tried(self, hook: HookView) -> HookTrialView:
        view: HookTrialView = await self._door.ask(TryHook(hook_id=hook.id))
        return view


@pytest.fixture
def programs(door: Door, folder: Path) -> Programs:
    return Programs(door, folder)


async def test_a_program_reads_the_event_and_its_last_line_is_the_answer(door: Door, programs: Programs) -> None:
    quiet = await programs.add("quiet", "cat >/dev/null")
    guard = await programs.add(
        "guard",
        """event=$(cat); echo "a warning" >&2
case "$event" in *'"path":"notes.md"'*) echo "{\\"decision\\": \\"deny\\", \\"reason\\": \\"$1 and $2\\"}";; esac""",
        "a b",
        "$(id); 'c'",
    )

    agreed, refused = await programs.tried(quiet), await programs.tried(guard)

    assert (quiet.kind, quiet.url, quiet.argv) == ("command", "", ["/hooks/quiet"])
    assert (agreed.status, agreed.decision) == ("ok", "allow")
    assert (refused.status, refused.reason) == ("denied", "a b and $(id); 'c'")
    assert "a warning" in refused.output


MISBEHAVING = {
    "hangs": ("sleep 60", "timeout", "did not answer within 900 ms"),
    "leaves a child": ("sleep 60 & cat >/dev/null; wait", "timeout", "did not answer"),
    "crashes": ("kill -SEGV $$", "error", "ended with status 139"),
    "fails": ("echo oh >&2; exit 3", "error", "ended with status 3"),
    "lies": ("echo fine", "error", "not JSON"),
    "says much": (f"head -c {LONGEST_OUTPUT + 1} /dev/zero | tr '\\0' x", "error", "more than 64 kB"),
    "allows and denies": ("""echo '{"decision": "deny", "decision": "allow"}'""", "error", "twice"),
    "says it for ever": ('yes \'{"decision": "allow"}\'', "timeout", "did not answer"),
    "is gone": ("exec /hooks/none", "error", "ended with status 127"),
}


async def test_whatever_a_program_does_its_policy_decides(door: Door, programs: Programs) -> None:
    for number, (what, (program, status, words)) in enumerate(MISBEHAVING.items()):
        blocks = await programs.add(f"p{number}", program, timeout_ms=900)
        allows = await programs.add(f"p{number}", program, timeout_ms=900, on_failure="allow")
        blocked, allowed = await asyncio.gather(programs.tried(blocks), programs.tried(allows))
        assert (blocked.status, blocked.decision, allowed.decision) == (status, "deny", "allow"), (what, blocked)
        assert words in blocked.reason, what


async def test_what_a_program_leaves_behind_ends_with_it(door: Door, programs: Programs) -> None:
    mark = new_mark()
    leaves = await programs.add("leaves", f"(setsid sleep {mark} >/dev/null 2>&1 &); sleep {mark} & exit 0")
    stays = await programs.add("stays", f"trap '' TERM HUP; (setsid sleep {mark} &); sleep {mark}", timeout_ms=900)

    tried = [await programs.tried(hook) for hook in (leaves, stays)]

    assert [(view.status, view.decision) for view in tried] == [("ok", "allow"), ("timeout", "deny")]
    assert marked_processes(mark) == []


async def test_a_program_sees_its_folder_and_nothing_else(
    door: Door, programs: Programs, folder: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_SERVICE", "hunter2hunter2")
    looks = await programs.add(
        "looks",
        f"""cat >/dev/null; env; ls {root} {folder} 2>&1; ls /; ls /workspace; cat /hooks/looks
echo x >/hooks/looks; ls /sys/class/net; cat /proc/net/route; echo '{{"decision": "allow"}}'""",
        on_failure="block",
    )

    view = await programs.tried(looks)

    assert view.decision == "allow", view
    assert "#!/bin/sh" in view.output
    assert "hunter2" not in view.output
    assert "README.md" not in view.output
    assert "Read-only file system" in view.output
    assert (folder / "looks").read_text().startswith("#!/bin/sh")


async def test_in_a_turn_a_program_refuses_a_call_and_stands_in_the_audit(
    door: Door, programs: Programs, model: ModelServer
) -> None:
    await programs.add(
        "no-reading", """cat >/dev/null; echo '{"decision": "deny", "reason": "Not this."}'""", matcher="read"
    )
    model.script(Reply(tool_calls=(ScriptedCall("read", '{"path": "README.md"}'),)), Reply(text="I may not."))
    session = new_id()

    turn = await door.say("Read it.", session)

    [part] = [part for part in turn.message["parts"] if part["type"] == "tool-read"]
    assert part["errorText"] == "The hook “no-reading” refused this: Not this."
    [run] = (await door.ask(ListHookRuns(session_id=session))).items
    assert (run.status, run.output.strip()) == ("denied", '{"decision": "deny", "reason": "Not this."}')


async def test_a_hook_may_become_another_kind_and_must_then_have_what_that_takes(
    door: Door, programs: Programs
) -> None:
    hook = await programs.add("quiet", "cat >/dev/null")
    assert (await door.ask(ListHooks())).commands_problem is None
    wanted = HookChanges(revision=0, kind="http")

    error = await refusal(door.ask(UpdateHook(command_id=new_id(), hook_id=hook.id, changes=wanted)))

    assert (error.http_status, error.field) == (422, "argv")


async def test_programs_lie_in_a_folder_that_the_operator_names_and_no_agent_writes_to(tmp_path: Path) -> None:
    (tmp_path / "root" / "hooks").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "root" / "hooks")

    unset = await HookCommands(None, tmp_path / "root").problem()
    gone = await HookCommands(tmp_path / "gone", tmp_path / "root").problem()
    within = await HookCommands(tmp_path / "link", tmp_path / "root").problem()
    around = await HookCommands(tmp_path, tmp_path / "root").problem()
    fine = await HookCommands(tmp_path / "root" / "hooks", tmp_path / "other").problem()

    assert [bool(text) for text in (unset, gone, within, around, fine)] == [True, True, True, True, False]
    assert within == around
    assert "overlap" in str(within)


async def test_a_program_that_is_not_there_or_not_executable_is_refused_where_that_is_seen(
    door: Door, programs: Programs, folder: Path
) -> None:
    (folder / "plain").write_text("#!/bin/sh\n")
    (folder / "inner").mkdir()
    (folder / "link").symlink_to("/bin/true")
    wrong = [("/hooks/none", "is not there"), ("/hooks/plain", "chmod +x"), ("/hooks/inner", "is no file")]

    for path, words in wrong:
        given = HookFields(name="Guard", event="PreToolUse", kind="command", argv=[path])
        error = await refusal(door.ask(CreateHook(command_id=new_id(), fields=given)))
        assert (error.http_status, error.field) == (422, "argv"), path
        assert words in error.message

    for path in ("/hooks/link", "/hooks/../bin/true", "/bin/true", "true"):
        given = HookFields(name="Guard", event="PreToolUse", kind="command", argv=[path])
        assert (await door.ask(CreateHook(command_id=new_id(), fields=given))).argv == [path]


async def test_a_hook_whose_program_is_gone_fails_in_plain_words_and_can_be_turned_off(
    door: Door, programs: Programs, folder: Path
) -> None:
    hook = await programs.add("guard", "cat >/dev/null")
    (folder / "guard").chmod(0o644)
    closed = await programs.tried(hook)
    (folder / "guard").unlink()
    gone = await programs.tried(hook)
    off = HookChanges(revision=0, enabled=False)
    changed = await door.ask(UpdateHook(command_id=new_id(), hook_id=hook.id, changes=off))
    moved = HookChanges(revision=1, argv=["/hooks/other"])
    refused = await refusal(door.ask(UpdateHook(command_id=new_id(), hook_id=hook.id, changes=moved)))

    assert (closed.status, closed.decision, gone.status, gone.decision) == ("error", "deny", "error", "deny")
    assert "cannot be run. /hooks/guard is not executable. Make it so with chmod +x" in closed.reason
    assert "cannot be run. /hooks/guard is not there" in gone.reason
    assert (changed.enabled, refused.field) == (False, "argv")


async def test_what_only_the_sandbox_sees_of_a_program_is_told_in_plain_words(
    door: Door, programs: Programs, folder: Path
) -> None:
    (folder / "lost").write_text("#!/opt/none/python9\n")
    (folder / "lost").chmod(0o755)
    (folder / "away").symlink_to("/opt/none/guard")
    tried = {}
    for path in ("/hooks/lost", "/hooks/away", "none-of-that-name", "/usr"):
        given = HookFields(name="Guard", event="PreToolUse", kind="command", argv=[path])
        tried[path] = await programs.tried(await door.ask(CreateHook(command_id=new_id(), fields=given)))

    for path, view in tried.items():
        assert (view.status, view.decision) == ("error", "deny"), path
        assert f"cannot be run. {path} is not " in view.reason
        assert "event.json" not in view.reason + view.output
    assert "chmod +x" in tried["/usr"].reason
    assert "its first line names" in tried["/hooks/lost"].reason
