"""A repository is cloned by the command line through every service, asked about, and its chats are deleted again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from popagent_testing.model_server import Reply
from popagent_testing.repositories import Repository, can_be_served, served
from tests.suite import Suite, SuiteError
from tests.talk import Talk

pytestmark = pytest.mark.skipif(not can_be_served(), reason="there is no git daemon")


async def test_a_repository_is_cloned_talked_about_and_its_chats_are_deleted(
    suite: Suite, talk: Talk, tmp_path: Path
) -> None:
    Repository.made(tmp_path / "served" / "beehive.git").commit("First", {"README.md": "one\n"})
    suite.model.script(Reply(text="It holds bees."))

    with served(tmp_path / "served") as address:
        added = suite.popagent("workspace", "add", f"{address}/beehive.git", "--name", "The beehive", "--json")
        with pytest.raises(SuiteError, match="no repository at this address"):
            suite.popagent("workspace", "add", f"{address}/missing.git")
    workspace = json.loads(added.stdout)
    answer = await talk.chat("What is this?", "bees", workspaceId=workspace["id"])
    gone = suite.popagent("workspace", "delete-sessions", "The beehive", "--yes")
    jobs = json.loads(suite.popagent("jobs", "--json").stdout)["items"]
    shown = suite.popagent("job-show", jobs[0]["id"], "--follow").stdout

    assert (workspace["path"], workspace["branch"]) == ("beehive", "main")
    assert answer.text == "It holds bees."
    assert gone.stdout == "1 chat is deleted\n"
    assert (await talk.http.get("/api/sessions/bees")).status_code == 404
    assert [each["state"] for each in jobs[:3]] == ["completed", "failed", "completed"]
    assert "completed, 100%" in shown
    assert suite.popagent("workspace", "delete", "The beehive").stdout.startswith("The beehive is forgotten")
