"""A turn that changes files: read, changed, written down before, refused where it may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_testing.model_server import ModelServer, Reply, ScriptedCall
from services.chat.tests.running import Chat, Door

READ = ScriptedCall("read", '{"path": "README.md"}')
EDIT = ScriptedCall("edit", '{"path": "README.md", "old_string": "heron", "new_string": "crane"}')
ASK_IMPLEMENTER = ScriptedCall("agent-implementer", '{"prompt": "Add httpx to the dependencies in pyproject.toml."}')
READ_MANIFEST = ScriptedCall("read", '{"path": "pyproject.toml"}')
ADD_DEPENDENCY = ScriptedCall(
    "edit",
    orjson.dumps(
        {
            "path": "pyproject.toml",
            "old_string": '"orjson==3.11",',
            "new_string": '"orjson==3.11",\n    "httpx==0.28",',
        }
    ).decode(),
)
HOOK = ScriptedCall("write", '{"path": ".git/hooks/post-checkout", "content": "#!/bin/sh\\n"}')


@pytest.fixture
async def writer(pool: Pool) -> AsyncIterator[None]:
    """Let the orchestrator and the implementer change files for one test."""
    await pool.execute("create table if not exists kept_agents as table agents")
    await pool.execute(
        "update agents set workspace_access = 'read-write', tools = array['read', 'edit', 'write'] "
        "where id in ('orchistrator', 'implementer')"
    )
    yield
    await pool.execute("delete from agents")
    await pool.execute("insert into agents table kept_agents")


async def intents(pool: Pool, turn_id: str) -> list[str]:
    return [row["tool"] for row in await pool.fetch("select * from turn_intents where turn_id = $1", turn_id)]


async def test_a_turn_edits_what_it_has_read_and_the_call_was_written_down(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, root: Path, writer: None
) -> None:
    model.script(
        Reply(tool_calls=(EDIT,)), Reply(tool_calls=(READ,)), Reply(tool_calls=(EDIT,)), Reply(text="It is crane now.")
    )

    turn = await door.say("make it crane", new_id())

    outputs = [part.get("output") or part.get("errorText") for part in turn.message["parts"] if "toolCallId" in part]
    assert "Read 'README.md' first" in str(outputs[0])
    assert "+The word of the day is crane." in str(outputs[2])
    assert (root / "default" / "README.md").read_text() == "The word of the day is crane.\n"
    assert await intents(pool, turn.view.turn_id) == ["edit", "edit"]
    assert turn.text == "It is crane now."


async def test_an_implementer_adds_a_dependency_to_the_manifest_that_it_has_read(
    chat: Chat, door: Door, model: ModelServer, root: Path, writer: None
) -> None:
    manifest = root / "default" / "pyproject.toml"
    manifest.write_text('[project]\nname = "demo"\ndependencies = [\n    "orjson==3.11",\n]\n')
    model.script(
        Reply(tool_calls=(ASK_IMPLEMENTER,)),
        Reply(tool_calls=(READ_MANIFEST,)),
        Reply(tool_calls=(ADD_DEPENDENCY,)),
        Reply(text="pyproject.toml has httpx now."),
        Reply(text="It is added."),
    )

    turn = await door.say("add httpx", new_id())

    assert turn.text == "It is added."
    assert manifest.read_text() == (
        '[project]\nname = "demo"\ndependencies = [\n    "orjson==3.11",\n    "httpx==0.28",\n]\n'
    )


async def test_an_obedient_model_cannot_plant_a_hook(
    chat: Chat, door: Door, model: ModelServer, root: Path, writer: None
) -> None:
    (root / "default" / ".git" / "hooks").mkdir(parents=True)
    model.script(Reply(tool_calls=(HOOK,)), Reply(text="I may not."))

    turn = await door.say("plant it", new_id())

    assert "hidden from agents" in str(turn.message["parts"])
    assert list((root / "default" / ".git" / "hooks").iterdir()) == []
