"""A person's first try of the agents' profiles, over HTTP and with the command line, of the whole suite."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import pytest

from popagent_kit.ids import new_id
from tests.stored import connected
from tests.suite import POSTGRES, Suite, SuiteError
from tests.talk import Talk

pytestmark = pytest.mark.timeout(120)

STEWARD: Final = "/api/agents/community-steward"
SKILL: Final = {"name": "a-name", "description": "When.", "instructions": "How."}
# (method, path, body, field); every one of them is 422.
REFUSED: Final[list[tuple[str, str, dict[str, Any], str]]] = [
    ("PATCH", STEWARD, {"tools": ["read", "telepathy"]}, "tools"),
    ("PATCH", STEWARD, {"tools": ["read", "read"]}, "tools"),
    ("PATCH", STEWARD, {"tools": ["agent-researcher"]}, "tools"),
    ("PATCH", STEWARD, {"tools": ["skill"]}, "tools"),
    ("PATCH", STEWARD, {"tools": "read"}, "tools"),
    ("PATCH", STEWARD, {"tools": None}, "tools"),
    ("PATCH", STEWARD, {"modelOverride": "no-such-model"}, "modelOverride"),
    ("PATCH", STEWARD, {"modelOverride": "a model\u202e"}, "modelOverride"),
    ("PATCH", STEWARD, {"modelOverride": "x" * 201}, "modelOverride"),
    ("PATCH", STEWARD, {"modelOverride": ""}, "modelOverride"),
    ("PATCH", STEWARD, {"workspaceAccess": "root"}, "workspaceAccess"),
    ("PATCH", STEWARD, {"instructions": " \n"}, "instructions"),
    ("PATCH", STEWARD, {"instructions": "x" * 20_001}, "instructions"),
    ("PATCH", STEWARD, {"name": "a\u202eb"}, "name"),
    ("PATCH", STEWARD, {"sourceUrl": "javascript:alert(1)"}, "sourceUrl"),
    ("PATCH", STEWARD, {"delegable": "yes"}, "delegable"),
    ("PATCH", STEWARD, {"id": "orchistrator"}, "id"),
    ("PATCH", STEWARD, {"maxSteps": 999}, "maxSteps"),
    ("PATCH", "/api/agents/orchistrator", {"delegable": True}, "delegable"),
    *(
        ("PATCH", "/api/settings/agent-runtime", {ceiling: wrong}, ceiling)
        for ceiling in ("supervisorMaxSteps", "specialistMaxSteps")
        for wrong in (0, 129, -1, 1.5, "12", None, True)
    ),
    *(
        ("POST", "/api/agents/community-steward/skills", {**SKILL, "name": wrong}, "name")
        for wrong in ("A-Name", "a_name", "-a", "a-", "a--b", "a b", "ä", "", "x" * 65, "a\n", "../a", None)
    ),
]  # fmt: skip


async def profile(talk: Talk, agent: str = "community-steward") -> dict[str, Any]:
    """Return the stored profile."""
    agents = (await talk.json("GET", "/api/agents"))["items"]
    found: dict[str, Any] = next(each for each in agents if each["id"] == agent)
    return found


async def test_what_no_profile_ceiling_or_skill_can_be_is_422_by_its_field_and_changes_nothing(talk: Talk) -> None:
    agents = await talk.json("GET", "/api/agents")
    settings = await talk.json("GET", "/api/settings/agent-runtime")
    skills = await talk.json("GET", f"{STEWARD}/skills")
    revisions = {f"/api/agents/{each['id']}": each["revision"] for each in agents["items"]}
    revisions["/api/settings/agent-runtime"] = settings["revision"]

    told = []
    for method, path, body, _ in REFUSED:
        whole = body if method == "POST" else {"revision": revisions[path], **body}
        told.append(await talk.http.request(method, path, json=whole))

    assert [(each.status_code, each.json()["field"]) for each in told] == [(422, field) for *_, field in REFUSED]
    assert all(each.json()["error"] and "Input should" not in each.json()["error"] for each in told)
    assert await talk.json("GET", "/api/agents") == agents
    assert await talk.json("GET", "/api/settings/agent-runtime") == settings
    assert await talk.json("GET", f"{STEWARD}/skills") == skills


async def test_of_many_who_edit_one_profile_at_once_each_is_stored_or_told_and_no_edit_is_lost(talk: Talk) -> None:
    before = await profile(talk)

    async def edit(number: int) -> int:
        """Add a line, again and again on what is stored, until it is."""
        refused, seen = 0, before
        while True:
            instructions = f"{seen['instructions']}\nEdit {number}."
            body = {"revision": seen["revision"], "instructions": instructions}
            answer = await talk.http.patch(STEWARD, json=body)
            if answer.status_code == 200:
                return refused
            assert (answer.status_code, answer.json()["error"]) == (409, "revision conflict")
            refused, seen = refused + 1, answer.json()["agent"]

    refusals = await asyncio.gather(*map(edit, range(8)))

    after = await profile(talk)
    assert after["revision"] == before["revision"] + 8
    assert sorted(after["instructions"].removeprefix(before["instructions"]).split("\n")[1:]) == [
        f"Edit {number}." for number in range(8)
    ]
    assert sum(refusals) >= 7  # all had seen the same revision, and one of them was the first
    restored = {"revision": after["revision"], "instructions": before["instructions"]}
    assert (await talk.http.patch(STEWARD, json=restored)).status_code == 200


async def test_the_command_line_edits_an_agent_whose_next_turn_has_it(suite: Suite, talk: Talk) -> None:
    await talk.chat("hello", new_id())
    edited = json.dumps({"instructions": "You are brief.", "tools": ["list"], "workspaceAccess": "read-only"})
    before = await profile(talk, "orchistrator")

    suite.popagent("agents", "patch", "orchistrator", edited)
    await talk.chat("hello", new_id())
    kept = {name: before[name] for name in ("instructions", "tools", "workspaceAccess")}
    suite.popagent("agents", "patch", "orchistrator", json.dumps(kept))

    first, second = (request["body"] for request in suite.model.requests()[-2:])
    assert "You are brief." not in first["messages"][0]["content"]
    assert second["messages"][0]["content"].startswith("You are brief.")
    known = {each["name"] for each in (await talk.json("GET", "/api/agents"))["tools"]}
    assert [name for each in second["tools"] if (name := each["function"]["name"]) in known] == ["list"]


async def test_agent_health_is_the_same_each_time_and_its_exit_status_tells_a_fault(suite: Suite, talk: Talk) -> None:
    well = [suite.popagent("agent-health", "--json").stdout for _ in range(2)]
    port = suite.program(POSTGRES).port
    password = (suite.home / "credentials" / "postgres-application").read_text().strip()
    broken = "update chat.agents set tools = tools || '{telepathy}'::text[] where id = 'reviewer'"
    mended = "update chat.agents set tools = array_remove(tools, 'telepathy') where id = 'reviewer'"
    async with connected(port, password, "popagent") as conn:
        await conn.execute(broken)
        try:
            with pytest.raises(SuiteError, match=r"ended with 1\b.*") as told:
                suite.popagent("agent-health")
            view = await talk.json("GET", "/api/agents/health")
        finally:
            await conn.execute(mended)

    assert well[0] == well[1]
    assert json.loads(well[0])["ok"] is True
    assert "reviewer" in str(told.value)
    assert view["ok"] is False
    faults = [each for each in view["findings"] if each["severity"] == "fault"]
    assert [(each["agentId"], each["code"], each["field"]) for each in faults] == [
        ("reviewer", "unknown_tool", "tools")
    ]
