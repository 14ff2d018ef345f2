"""The embedded model in the whole suite: it gives work to a specialist. Structure, never wording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_kit.ids import new_id
from popagent_local.model_server import weights
from tests.suite import Suite

pytestmark = [pytest.mark.full, pytest.mark.real_model, pytest.mark.timeout(1200)]

WATERING = """\
def thirsty(pots):
    \"\"\"Return the names of the pots whose soil is dry.\"\"\"
    return [name for name, moisture in pots.items() if moisture < 0.2]
"""
# The model decides at temperature 0, so what it chooses for these words does not change from run to run.
QUESTION = "Ask the researcher to find out what watering.py does."


@pytest.fixture
def real_suite(tmp_path: Path) -> Iterator[Suite]:
    if weights.paths() is None:
        pytest.fail("The weights are not complete. Run: popagent model pull")
    with Suite(tmp_path, embedded_model=True) as suite:
        yield suite


async def test_the_embedded_model_gives_work_to_a_specialist_and_answers(real_suite: Suite) -> None:
    folder = real_suite.workspaces / "garden"
    folder.mkdir(parents=True)
    (folder / "watering.py").write_text(WATERING)
    session = new_id()

    async with real_suite.talk() as talk:
        made = await talk.json("POST", "/api/workspaces", body={"name": "Garden", "path": folder.name})
        # A call may take minutes on a busy machine; the turn itself bounds it.
        answer = await asyncio.wait_for(talk.chat(QUESTION, session, workspaceId=made["id"]), 1_000)
        kept = (await talk.messages(session))[-1]

    states = [(part["data"]["agentId"], part["data"]["state"]) for part in kept["parts"] if "Activity" in part["type"]]
    calls = [part for part in kept["parts"] if part["type"] == "tool-agent-researcher"]
    assert ("researcher", "completed") in states
    assert calls[0]["state"] == "output-available"
    assert calls[0]["output"].strip()
    assert answer.ending is not None
    assert answer.ending["type"] == "finish"
    assert answer.text.strip()
    assert kept["metadata"]["endReason"] in ("stop", "length")
