"""What an operator wrote down for a workspace's commands holds from the next turn on."""

from __future__ import annotations

import pytest

from popagent_kit.ids import new_id
from popagent_kit.settings import home_folder
from popagent_sandbox.confinement import confinement_problem
from popagent_sandbox.grant_file import grant_file
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


async def test_a_file_that_cannot_be_used_ends_the_turn_with_the_reason(
    chat: Chat, door: Door, model: ModelServer
) -> None:
    place = grant_file(home_folder(), "default")
    place.parent.mkdir(parents=True)
    place.write_text("path = 5")

    turn = await door.say("hello", new_id())

    assert "sandbox/default.toml in popagent's home cannot be used" in str(turn.message)
