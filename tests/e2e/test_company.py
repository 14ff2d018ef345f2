"""A change by a company of agents: looked at, made, tested in the sandbox, judged. The model is scripted."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest

from popagent_kit.ids import new_id
from popagent_sandbox.confinement import confinement_problem
from popagent_testing.model_replies import Reply, call
from tests.suite import Suite
from tests.talk import Talk

BROKEN = "def mean(values):\n    return sum(values) / (len(values) - 1)\n"
WHOLE = "def mean(values):\n    return sum(values) / len(values)\n"
TEST = "from station import mean\n\nassert mean([2, 4]) == 3, mean([2, 4])\nprint('1 passed')\n"
RUN_TEST = call("shell", command="python3 test_station.py")


@pytest.fixture
def repository(suite: Suite) -> Path:
    """A repository with a test that fails, below the workspace root."""
    folder = suite.workspaces / new_id()
    folder.mkdir(parents=True)
    (folder / "station.py").write_text(BROKEN)
    (folder / "test_station.py").write_text(TEST)
    for words in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A station"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
    return folder


async def asked(talk: Talk, repository: Path, question: str) -> tuple[str, dict[str, Any]]:
    """Register the repository and ask; return the answer as it came and as it is stored."""
    made = await talk.json("POST", "/api/workspaces", body={"name": "Station", "path": repository.name})
    session = new_id()
    answer = await talk.chat(question, session, workspaceId=made["id"])
    return answer.text, (await talk.messages(session))[-1]


def delegated(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (part["data"]["agentId"], part["data"]["state"])
        for part in answer["parts"]
        if part["type"] == "data-agentActivity"
    ]


@pytest.mark.skipif(confinement_problem() is not None, reason="no sandbox can be made here")
async def test_a_failing_test_is_researched_mended_tested_in_the_sandbox_and_accepted(
    suite: Suite, talk: Talk, repository: Path
) -> None:
    suite.model.script(
        Reply(tool_calls=(call("agent-researcher", prompt="Why does test_station.py fail?"),)),
        Reply(tool_calls=(call("read", path="station.py"),)),
        Reply(text="station.py line 2 divides by one too few."),
        Reply(tool_calls=(call("agent-implementer", prompt="Mend mean in station.py, run test_station.py."),)),
        Reply(tool_calls=(RUN_TEST, call("read", path="station.py"))),
        Reply(tool_calls=(call("edit", path="station.py", old_string="(len(values) - 1)", new_string="len(values)"),)),
        Reply(tool_calls=(RUN_TEST,)),
        Reply(text="Mended station.py; test_station.py passes."),
        Reply(tool_calls=(call("agent-reviewer", prompt="Is mean in station.py right now?"),)),
        Reply(tool_calls=(call("gitDiff"),)),
        Reply(text="ACCEPTED"),
        Reply(text="Mended and accepted."),
    )
    before = len(suite.model.requests())

    text, kept = await asked(talk, repository, "The test fails. Mend it.")

    assert text == "Mended and accepted."
    assert (repository / "station.py").read_text() == WHOLE
    assert delegated(kept) == [("researcher", "completed"), ("implementer", "completed"), ("reviewer", "completed")]
    told = [orjson.dumps(request["body"]["messages"]).decode() for request in suite.model.requests()[before:]]
    assert "AssertionError" in told[5]
    assert "1 passed" in told[7]
    assert "-    return sum(values) / (len(values) - 1)" in told[10]


async def test_what_the_reviewer_refuses_goes_back_and_is_told(suite: Suite, talk: Talk, repository: Path) -> None:
    wrong, mended = "return sum(values)", "return sum(values) / len(values)"
    suite.model.script(
        Reply(tool_calls=(call("agent-implementer", prompt="Mend mean in station.py."),)),
        Reply(tool_calls=(call("read", path="station.py"),)),
        Reply(
            tool_calls=(
                call("edit", path="station.py", old_string="return sum(values) / (len(values) - 1)", new_string=wrong),
            )
        ),
        Reply(text="Mended."),
        Reply(tool_calls=(call("agent-reviewer", prompt="Is mean in station.py right?"),)),
        Reply(tool_calls=(call("edit", path="station.py", old_string=wrong, new_string=mended),)),
        Reply(text="REFUSED\nstation.py line 2: blocker, nothing is divided."),
        Reply(text="The reviewer refused the change: nothing is divided. It stands in station.py."),
    )

    text, kept = await asked(talk, repository, "Mend it, and have it reviewed.")

    assert text.startswith("The reviewer refused")
    assert delegated(kept) == [("implementer", "completed"), ("reviewer", "completed")]
    [review] = [part["output"] for part in kept["parts"] if part["type"] == "tool-agent-reviewer"]
    assert review.startswith("REFUSED")
    assert wrong + "\n" in (repository / "station.py").read_text()  # who only reads could not change it
    refused = orjson.dumps(suite.model.requests()[-2]["body"]["messages"]).decode()
    assert "edit is not allowed here" in refused or "There is no tool named edit" in refused
