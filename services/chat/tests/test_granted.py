"""What an operator wrote down for a workspace's commands holds from the next turn on."""

from __future__ import annotations

from pathlib import Path

import pytest

from popagent_kit.ids import new_id
from popagent_kit.settings import home_folder
from popagent_local.preparing import prepare
from popagent_sandbox.confinement import confinement_problem
from popagent_sandbox.grant_file import grant_file
from popagent_testing.model_replies import call
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Chat, Door
from services.chat.tests.test_commands import runs_commands

__all__ = ["runs_commands"]

confined = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))


@confined
@pytest.mark.usefixtures("runs_commands")
async def test_commands_find_what_the_operator_gives(chat: Chat, door: Door, model: ModelServer) -> None:
    place = grant_file(home_folder(), "default")
    place.parent.mkdir(parents=True)
    place.write_text('path = ["/opt/own"]\n[environment]\nWHO = "heron"\n')
    call = ScriptedCall("shell", '{"command": "echo $WHO $PATH"}')
    model.script(Reply(tool_calls=(call,)), Reply(text="It is said."))

    turn = await door.say("who?", new_id())

    [output] = [str(part.get("output")) for part in turn.message["parts"] if "toolCallId" in part]
    assert "heron /opt/own:" in output


@confined
@pytest.mark.usefixtures("runs_commands")
async def test_a_test_suite_that_needs_what_the_operator_prepared_and_mounted_runs(
    chat: Chat, door: Door, model: ModelServer, root: Path, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "check").write_text(
        '#!/bin/sh\ntest "$CI" = 1 && . ./fetched.sh && echo "$passed passed"; touch /opt/tools/x\n'
    )
    (tools / "check").chmod(0o755)
    place = grant_file(home_folder(), "default")
    place.parent.mkdir(parents=True)
    place.write_text(
        f"""prepare = "echo passed=7 > fetched.sh"
path = ["/opt/tools"]
[environment]
CI = "1"
[[mounts]]
source = "{tools}"
target = "/opt/tools"
"""
    )
    suite = call("shell", command="check")
    model.script(
        Reply(tool_calls=(suite,)), Reply(text="It fails."), Reply(tool_calls=(suite,)), Reply(text="It passes.")
    )

    before = await door.say("test it", new_id())
    prepare(home_folder(), root, "default")
    after = await door.say("test it", new_id())

    [failed], [passed] = (
        [str(part.get("output")) for part in turn.message["parts"] if "toolCallId" in part] for turn in (before, after)
    )
    assert "passed" not in failed
    assert "7 passed" in passed
    assert not (tools / "x").exists()


async def test_a_file_that_cannot_be_used_ends_the_turn_with_the_reason(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    place = grant_file(home_folder(), "default")
    place.parent.mkdir(parents=True)
    place.write_text("path = 5")

    turn = await door.say("hello", new_id())

    assert "sandbox/default.toml in popagent's home cannot be used" in str(turn.message)
