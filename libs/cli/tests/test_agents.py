from __future__ import annotations

from typing import Any

import pytest

from popagent_kit import json

from .conftest import Peer, Run, view

AGENT = {
    **view("AgentView"),
    "id": "researcher",
    "name": "Researcher",
    "revision": 4,
    "modelOverride": None,
    "tools": ["read", "grep"],
}
FAULT = {**view("AgentHealthView")["findings"][0], "agentId": "researcher", "severity": "fault", "field": "tools"}
FAULT["skillId"] = None
NOTE = {**FAULT, "code": "model_inherited", "severity": "note", "message": "Inherits\x1b[2J.", "fix": "Nothing."}


@pytest.fixture(autouse=True)
def stored(peer: Peer) -> None:
    peer.answers["agents"] = {"items": [AGENT], "tools": [], "nextCursor": None}
    peer.answers["agents patch"] = lambda asked: {**AGENT, **asked.body, "revision": 5}


def health(*findings: dict[str, Any], **changes: Any) -> dict[str, Any]:
    ok = all(each["severity"] == "note" for each in findings)
    return {"ok": ok, "agents": 7, "skills": 2, "modelsKnown": True, "findings": list(findings), **changes}


def test_agents_are_listed_and_one_is_shown_whole(peer: Peer, run: Run) -> None:
    edited = {**AGENT, "instructions": "Look.\n\x1b[2JTell."}
    peer.answers["agents"] = {"items": [edited], "tools": [], "nextCursor": None}

    listed = run("agents")
    shown = run("agents", "show", "researcher")

    assert run("agents", "list").stdout == listed.stdout
    assert "researcher  Researcher  none       yes        (inherited)" in listed.stdout
    assert "read, grep" in listed.stdout
    assert shown.stdout.endswith("\ninstructions\nLook.\nTell.\n")
    assert "tools                  read, grep\n" in shown.stdout


def test_a_patch_sends_the_stored_revision_and_tells_what_changed(peer: Peer, run: Run) -> None:
    result = run("agents", "patch", "researcher", '{"name":"Scout","tools":["read"]}')

    assert peer.asked[-1].path == "/api/agents/researcher"
    assert peer.asked[-1].body == {"revision": 4, "name": "Scout", "tools": ["read"]}
    assert result.stdout == 'name  Researcher → Scout\ntools  ["read","grep"] → ["read"]\n'


def test_a_patch_may_name_the_revision_and_come_from_standard_input(peer: Peer, run: Run) -> None:
    result = run("agents", "patch", "researcher", "-", "--json", stdin='{"revision":3,"name":"Scout"}')

    assert peer.asked[-1].body == {"revision": 3, "name": "Scout"}
    assert json.loads(result.stdout)["name"] == "Scout"


@pytest.mark.parametrize("changes", ["{name:1}", "[]", "{}"])
def test_what_is_no_patch_is_refused_with_an_example(peer: Peer, run: Run, changes: str) -> None:
    result = run("agents", "patch", "researcher", changes)

    assert result.exit_code == 1
    assert "agents patch researcher '{" in result.stderr
    assert not peer.asked


def test_an_agent_that_does_not_exist_is_told_with_those_that_do(peer: Peer, run: Run) -> None:
    results = [run("agents", "show", "nobody"), run("agents", "patch", "nobody", '{"name":"X"}')]

    assert [result.exit_code for result in results] == [1, 1]
    assert all("There are: researcher." in result.stderr for result in results)
    assert {asked.method for asked in peer.asked} == {"GET"}


def test_profiles_without_fault_exit_with_0_and_their_notes_are_told(peer: Peer, run: Run) -> None:
    peer.answers["agent-health"] = health(NOTE, modelsKnown=False)

    text, as_json = run("agent-health"), run("agent-health", "--json")

    assert (text.exit_code, as_json.exit_code) == (0, 0)
    assert "note    model_inherited  Inherits." in text.stdout
    assert text.stdout.endswith("7 agents and 2 enabled skills, no fault.\n")
    assert "models were not checked" in text.stderr
    assert json.loads(as_json.stdout) == peer.answers["agent-health"]


def test_one_skill_is_told_as_one(peer: Peer, run: Run) -> None:
    peer.answers["agent-health"] = health(skills=1)

    assert run("agent-health").stdout == "7 agents and 1 enabled skill, no fault.\n"


def test_a_fault_exits_with_1_and_says_its_repair(peer: Peer, run: Run) -> None:
    peer.answers["agent-health"] = health(NOTE, {**FAULT, "code": "unknown_tool", "fix": "Take it out."})

    text, as_json = run("agent-health"), run("agent-health", "--json")

    assert (text.exit_code, as_json.exit_code) == (1, 1)
    assert "researcher  fault   unknown_tool" in text.stdout
    assert "researcher: Take it out." in text.stderr
    assert "popagent agents patch ID CHANGES" in text.stderr
    assert json.loads(as_json.stdout)["ok"] is False


def test_a_fault_of_a_skill_says_where_to_look_at_it(peer: Peer, run: Run) -> None:
    peer.answers["agent-health"] = health({**FAULT, "code": "skill_off_the_rules", "skillId": "s1"})

    result = run("agent-health")

    assert result.exit_code == 1
    assert "popagent skill-show AGENT NAME" in result.stderr
    assert "agents patch" not in result.stderr


def test_a_check_that_cannot_be_made_is_no_clean_result(peer: Peer, run: Run) -> None:
    peer.answers["agent-health"] = ({"error": "chat does not answer.", "code": "unavailable"}, 503)

    result = run("agent-health", "--json")

    assert result.exit_code != 0
    assert result.stdout == ""


def test_the_company_is_told_by_department_with_who_is_an_agent(peer: Peer, run: Run) -> None:
    member = {"id": "writer", "name": "Pia", "title": "Writer", "isAgent": False, "delegable": False}
    agent = {**member, "id": "researcher", "name": "Researcher", "isAgent": True, "delegable": True}
    department = {"id": "d", "name": "Research", "purpose": "P.", "members": [agent, member]}
    peer.answers["company"] = {"departments": [department]}

    lines = [line.split() for line in run("company").stdout.splitlines()]

    assert lines == [
        ["DEPARTMENT", "NAME", "TITLE", "AGENT", "ID"],
        ["Research", "Researcher", "Writer", "delegable", "researcher"],
        ["Research", "Pia", "Writer", "-", "writer"],
    ]


def test_an_agent_is_found_by_its_name(peer: Peer, run: Run) -> None:
    peer.answers["agents"] = {"items": [{**AGENT, "id": "orchistrator", "name": "Orchestrator"}], "tools": []}

    assert "orchistrator" in run("agents", "show", "orchestrator").stdout


def test_a_preset_model_that_no_server_offers_is_listed_as_inherited(peer: Peer, run: Run) -> None:
    preset = {**AGENT, "modelOverride": "cx/spark", "overrideIsSeeded": True}
    chosen = {**AGENT, "id": "reviewer", "modelOverride": "cx/other", "overrideIsSeeded": False}
    peer.answers["agents"] = {"items": [preset, chosen], "tools": [], "nextCursor": None}
    peer.answers["agent-health"] = health({**NOTE, "agentId": "researcher"})

    passed_over = run("agents")
    peer.answers["agent-health"] = health()
    offered = run("agents")
    peer.answers["agent-health"] = ({"error": "chat does not answer.", "code": "unavailable"}, 503)
    unknown = run("agents")

    first, second = passed_over.stdout.splitlines()[1:]
    assert "(inherited)" in first
    assert "cx/other" in second
    assert (
        passed_over.stderr == "researcher uses the model of the chat: the server does not offer its preset cx/spark.\n"
    )
    assert ("cx/spark" in offered.stdout, offered.stderr) == (True, "")
    assert (unknown.exit_code, "chat does not answer" in unknown.stderr) == (0, True)
