"""`popagent skill-…` over what is stored: found by name, switched by its revision, shown whole or by its references."""

from __future__ import annotations

from typing import Any

import pytest

from popagent_kit import json

from .conftest import Peer, Run, view

SKILL = {
    **view("SkillView"),
    "id": "s1",
    "agentId": "researcher",
    "name": "notes",
    "description": "Write notes.",
    "instructions": "1. Read.\n\x1b[2J2. Write.",
    "references": {"b.md": "B\x1b[2J\n", "a/c.md": "C" * 2_000},
    "metadata": {"version": "1"},
    "license": None,
    "provenance": "https://example.org",
    "evolutionManaged": False,
    "enabled": True,
    "revision": 4,
}
LEARNED = {**SKILL, "id": "notes", "name": "learned", "evolutionManaged": True, "enabled": False, "references": {}}
PATH = "/api/agents/researcher/skills"


@pytest.fixture(autouse=True)
def stored(peer: Peer) -> None:
    peer.answers["skill-list"] = {"items": [LEARNED, SKILL], "nextCursor": None}
    peer.answers["skill-enable"] = lambda asked: {**SKILL, **asked.body, "revision": 5}


def test_skills_are_listed_with_whose_they_are(peer: Peer, run: Run) -> None:
    result, as_json = run("skill-list", "researcher"), run("skill-list", "researcher", "--json")

    lines = result.stdout.splitlines()
    assert lines[1].split()[:3] == ["learned", "off", "learned"]
    assert lines[2].startswith("notes    on   https://example.org           2  ")
    assert lines[2].endswith("Write notes.")
    assert json.loads(as_json.stdout)["items"] == [LEARNED, SKILL]


def test_an_agent_without_skills_is_told_how_to_get_one(peer: Peer, run: Run) -> None:
    peer.answers["skill-list"] = {"items": [], "nextCursor": None}

    result = run("skill-list", "researcher")

    assert (result.exit_code, result.stdout) == (0, "")
    assert "popagent skill-import researcher FOLDER" in result.stderr


def test_a_skill_is_shown_whole_and_a_reference_of_it_as_it_is(peer: Peer, run: Run) -> None:
    whole, text = run("skill-show", "researcher", "notes"), run("skill-show", "researcher", "notes", "b.md")

    assert whole.stdout.endswith("\ndescription\nWrite notes.\n\ninstructions\n1. Read.\n2. Write.\n")
    assert "references        a/c.md (2.0 kB), b.md (6 B)" in whole.stdout
    assert "metadata          version: 1" in whole.stdout
    assert text.stdout == "B\n\n"
    assert json.loads(run("skill-show", "researcher", "s1", "--json").stdout) == SKILL


@pytest.mark.parametrize(
    ("arguments", "words"), [(("gone",), "It has: learned, notes."), (("notes", "x"), "a/c.md, b.md")]
)
def test_what_is_not_there_is_told_with_what_is(run: Run, arguments: tuple[str, ...], words: str) -> None:
    result = run("skill-show", "researcher", *arguments)

    assert result.exit_code == 1
    assert words in result.stderr


def test_a_skill_is_switched_by_its_revision(peer: Peer, run: Run) -> None:
    off, already = run("skill-disable", "researcher", "notes"), run("skill-enable", "researcher", "notes")

    changes: list[Any] = [(asked.path, asked.body) for asked in peer.asked if asked.method == "PATCH"]
    assert changes == [
        (f"{PATH}/s1", {"revision": 4, "enabled": False}),
        (f"{PATH}/s1", {"revision": 4, "enabled": True}),
    ]
    assert (off.stdout, already.stdout) == ("notes is disabled\n", "notes was enabled already\n")
    assert json.loads(run("skill-disable", "researcher", "notes", "--json").stdout)["enabled"] is False


def test_a_name_goes_before_an_id_when_one_is_deleted(peer: Peer, run: Run) -> None:
    result = run("skill-delete", "researcher", "notes")

    assert (peer.asked[-1].method, peer.asked[-1].path) == ("DELETE", f"{PATH}/s1")
    assert result.stdout == "notes is deleted\n"


def test_a_refusal_is_one_sentence_and_no_agent_can_name_another_path(peer: Peer, run: Run) -> None:
    peer.answers["skill-enable"] = ({"error": "revision conflict", "code": "revision_conflict", "skill": SKILL}, 409)

    stale, odd = run("skill-disable", "researcher", "notes"), run("skill-list", "../workspaces")

    assert (stale.exit_code, odd.exit_code) == (1, 2)
    assert "changed by somebody else" in stale.stderr


def test_an_agent_that_is_not_there_is_told_with_those_that_are(peer: Peer, run: Run) -> None:
    peer.answers["skill-list"] = ({"error": "There is no such agent.", "code": "not_found"}, 404)
    peer.answers["agents"] = {"items": [view("AgentView", id="researcher")], "tools": [], "nextCursor": None}

    results = [run("skill-show", "nobody", "x"), run("skill-list", "nobody"), run("skill-export", "nobody", "out")]

    assert [each.exit_code for each in results] == [1, 1, 1]
    assert all("There is no agent nobody. There are: researcher." in each.stderr for each in results)
