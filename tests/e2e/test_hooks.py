"""Hooks through every service: added by the command line, asked in a chat, shown to the person, found in the audit."""

from __future__ import annotations

import pytest

from popagent_kit import json
from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from tests.hook_door import HookDoor, denies
from tests.suite import Suite
from tests.talk import Talk

pytestmark = pytest.mark.full


async def test_a_hook_of_the_command_line_refuses_a_call_of_a_chat_and_stands_in_its_audit(
    suite: Suite, talk: Talk, running_hook_door: HookDoor
) -> None:
    session, url = new_id(), f"{running_hook_door.origin}/guard"
    running_hook_door.forget()
    running_hook_door.answers["/guard"] = denies("Not today.")
    suite.model.script(Reply(tool_calls=(call("read", path="README.md"),)), Reply(text="I may not."))

    added = suite.popagent("hooks", "add", "Guard", "--event", "PreToolUse", "--to", url, "--json").stdout
    hook_id = json.loads(added)["id"]
    tried = suite.popagent("hooks", "test", hook_id).stdout
    answer = await talk.chat("Read it.", session)
    runs = suite.popagent("hooks", "runs", session).stdout
    suite.popagent("hooks", "delete", hook_id)

    assert "denied, refuses" in tried
    assert answer.text == "I may not."
    [part] = [part for part in answer.message["parts"] if part["type"] == "tool-read"]
    assert part["errorText"] == "The hook “Guard” refused this: Not today."
    assert "denied" in runs
    assert "Not today." in runs
