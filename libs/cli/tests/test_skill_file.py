"""SKILL.md: what is read of it, what is refused, and that what is written reads as it was."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from popagent_cli.skill_file import SkillFileError, parse, render
from popagent_cli.skill_tree import checked
from popagent_proto.chat.skills import SkillFields

HEAD = "name: notes\ndescription: Write notes.\n"


def file(front: str = HEAD, body: str = "\n# Notes\n\nWrite.\n") -> str:
    return f"---\n{front}---\n{body}"


def test_front_matter_and_instructions_are_read() -> None:
    front = (
        "name: notes\ndescription: >\n  Write\n  notes.\nlicense: MIT\ncompatibility: ''\n"
        "allowed-tools: read grep\nmetadata:\n  version: 1.0\n  on: yes\n  date: 2026-01-02\n"
    )

    found = parse("\ufeff" + file(front).replace("\n", "\r\n"))

    assert found.fields == {
        "name": "notes",
        "description": "Write notes.",
        "license": "MIT",
        "allowedTools": "read grep",
        "metadata": {"version": "1.0", "on": "yes", "date": "2026-01-02"},
        "instructions": "# Notes\n\nWrite.",
    }
    assert found.unknown == []


def test_a_line_of_dashes_in_the_instructions_is_theirs() -> None:
    assert parse(file(body="a\n---\nb\n")).fields["instructions"] == "a\n---\nb"


def test_what_has_no_place_is_named_however_it_looks() -> None:
    found = parse(file(HEAD + "version: 2\nhooks: {a: [{b: c}], d: e}\nallowed-tools: [read, grep]\nlicense: null\n"))

    assert found.unknown == ["version", "hooks"]
    assert found.fields["allowedTools"] == "read grep"
    assert "license" not in found.fields


ODD = {
    "nothing": ("", "front matter between"),
    "no front matter": ("# Notes\n", "front matter between"),
    "an end that is missing": ("---\n" + HEAD, "front matter between"),
    "a text": (file("notes\n"), "not a list of keys"),
    "a list": (file("- notes\n"), "not a list of keys"),
    "no key": (file(""), "not a list of keys"),
    "a colon in a text": (file("name: notes\ndescription: Use: always\n"), "line 3"),
    "a tab": (file("name:\n\t- a\n"), "not YAML"),
    "an open bracket": (file("name: [\n"), "not YAML"),
    "a control character": (file("name: a\x01\n"), "character that YAML does not allow"),
    "a NUL": (file("name: a\x00\n"), "character that YAML does not allow"),
    "a tag": (file("name: !!python/object/apply:os.system ['true']\n"), "tags"),
    "a tag of its own": (file("name: !include /etc/passwd\n"), "tags"),
    "an anchor": (file("name: &a notes\n"), "anchors"),
    "an alias": (file("a: &a [x]\nname: *a\n"), "anchors"),
    "a merge": (file("a: &a {name: x}\n<<: *a\n"), "anchors"),
    "a key twice": (file(HEAD + "name: other\n"), "twice"),
    "a key of metadata twice": (file(HEAD + "metadata: {a: b, a: c}\n"), "twice in metadata"),
    "a key that is none": (file("? [a]\n: b\n"), "no text"),
    "two documents": (file("name: notes\n...\n%YAML 1.1\n"), "not YAML"),
    "two documents more": (file("name: notes\n--- {a: b}\n"), "more than one document"),
    "a name that is a list": (file("name: [notes]\n"), "a name that is no text"),
    "metadata that is a text": (file(HEAD + "metadata: a\n"), "metadata"),
    "metadata that is nested": (file(HEAD + "metadata: {a: {b: c}}\n"), "metadata.a"),
    "long front matter": (file(HEAD + "# " + "a" * 20_000 + "\n"), "20,000 is the most"),
}


@pytest.mark.parametrize(("text", "words"), ODD.values(), ids=list(ODD))
def test_what_is_no_front_matter_is_refused_with_its_reason(text: str, words: str) -> None:
    with pytest.raises(SkillFileError, match=re.escape(words)):
        parse(text)


def test_a_bomb_of_aliases_and_one_of_brackets_cost_nothing() -> None:
    laughs = "a: &a [lol, lol, lol]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(20)
    )
    began = time.monotonic()

    for bomb in (laughs, "a: " + "[" * 9_000 + "\n", "a: " + "{a: " * 4_000 + "\n", "? " * 9_000 + "\n"):
        with pytest.raises(SkillFileError):
            parse(file(bomb))

    assert time.monotonic() - began < 10


STORED: list[dict[str, Any]] = [
    {"name": "notes", "description": 'Use: "always" & <never> # no comment', "instructions": "---\n\n  a\n\n---"},
    {"name": "2026", "description": "null", "instructions": "ä\u2028b", "license": "on", "metadata": {"a": "1.0"}},
    {"name": "true", "description": "Two\nlines\n\nand more", "instructions": "\tx", "compatibility": "~"},
    {"name": "a", "description": "\x1b[2J " + "ab " * 300, "instructions": "i", "allowedTools": "[read]"},
]


@pytest.mark.parametrize("stored", STORED)
def test_what_is_written_reads_as_it_was(stored: dict[str, Any]) -> None:
    skill = SkillFields.model_validate(stored)

    found = parse(render(skill))

    assert checked(found.fields) == skill
    assert found.unknown == []
