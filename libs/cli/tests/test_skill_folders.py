"""Folders with a SKILL.md: read whole or refused with the place, sent once, and written as they were."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from popagent_cli.errors import CliError
from popagent_cli.skill_tree import SkillTree, read_tree, write_tree
from popagent_kit import json
from popagent_proto.chat.skills import SkillFields

from .conftest import Asked, Peer, Run, view

HEAD = "---\nname: notes\ndescription: Write notes.\nlicense: MIT\nmetadata:\n  version: '1'\n---\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "skills" / "notes"
    (folder / "references" / "deep").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"{HEAD}\n# Notes\n\nSee references/a.md.\n")
    (folder / "references" / "a.md").write_bytes("ä\r\n".encode())
    (folder / "references" / "deep" / "b.txt").write_text("")
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(CliError) as error:
        read_tree(folder)
    return error.value.message


def test_a_folder_is_read_whole(folder: Path) -> None:
    tree = read_tree(folder)

    assert tree == SkillTree(
        SkillFields(
            name="notes",
            description="Write notes.",
            instructions="# Notes\n\nSee references/a.md.",
            license="MIT",
            metadata={"version": "1"},
            references={"a.md": "ä\r\n", "deep/b.txt": ""},
        ),
        [],
    )


def test_what_has_no_place_in_a_skill_is_named_and_litter_is_not(folder: Path) -> None:
    (folder / "scripts").mkdir()
    (folder / "LICENSE.txt").write_text("MIT")
    (folder / "references" / ".DS_Store").write_bytes(b"\0\xff")
    (folder / "SKILL.md").write_text(HEAD.replace("license", "version: 2\nlicense") + "Do.\n")

    tree = read_tree(folder)

    assert tree.left_out == ["version (front matter)", "LICENSE.txt", "scripts"]
    assert set(tree.fields.references) == {"a.md", "deep/b.txt"}


def linked(folder: Path) -> None:
    (folder / "references" / "passwd").symlink_to("/etc/passwd")


def linked_folder(folder: Path) -> None:
    (folder / "references" / "etc").symlink_to("/etc")


def linked_references(folder: Path) -> None:
    (folder / "references").rename(folder / "other")
    (folder / "references").symlink_to("other")


def linked_main(folder: Path) -> None:
    (folder / "SKILL.md").rename(folder / "other.md")
    (folder / "SKILL.md").symlink_to("other.md")


def renamed(folder: Path) -> None:
    (folder / "SKILL.md").rename(folder / "Skill.md")


def within(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "SKILL.md").rename(folder / "inner" / "SKILL.md")


def deep(folder: Path) -> None:
    (folder / "references" / "/".join("d" * 20)).mkdir(parents=True)


def many(folder: Path) -> None:
    for number in range(50):
        (folder / "references" / f"{number}.md").write_text("")


def undecodable(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder / "references") + b"/\xff.md")).write_text("")


HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "another name": (
        lambda f: (f / "SKILL.md").write_text(HEAD.replace("notes", "other", 1) + "x"),
        "both must be the same",
    ),
    "a name off the rule": (
        lambda f: (f / "SKILL.md").write_text(HEAD.replace("notes", "No Tes", 1) + "x"),
        "name: must be",
    ),
    "no description": (lambda f: (f / "SKILL.md").write_text("---\nname: notes\n---\nx"), "description"),
    "no instructions": (lambda f: (f / "SKILL.md").write_text(HEAD), "instructions"),
    "bad YAML": (lambda f: (f / "SKILL.md").write_text("---\nname: [\n---\nx"), "not YAML"),
    "a huge file": (lambda f: (f / "SKILL.md").write_bytes(b"x" * 300_000), "larger than"),
    "no UTF-8": (lambda f: (f / "SKILL.md").write_bytes(b"---\nname: \xff\n---\n"), "SKILL.md is not text in UTF-8"),
    "a NUL": (lambda f: (f / "SKILL.md").write_text(HEAD + "a\0b"), "NUL"),
    "no file": (lambda f: (f / "SKILL.md").unlink(), "there is no SKILL.md"),
    "a folder of that name": (lambda f: ((f / "SKILL.md").unlink(), (f / "SKILL.md").mkdir()), "SKILL.md"),
    "another spelling": (renamed, "must be called SKILL.md"),
    "a folder of skills": (within, "but one in inner"),
    "a linked file": (linked_main, "SKILL.md is a link"),
    "linked references": (linked_references, "references is a link"),
    "a linked reference": (linked, "references/passwd is a link"),
    "a linked folder": (linked_folder, "references/etc is a link"),
    "a pipe": (lambda f: os.mkfifo(f / "references" / "pipe"), "references/pipe is no file"),
    "a binary reference": (lambda f: (f / "references" / "a.png").write_bytes(b"\x89PNG\xff"), "a.png is not text"),
    "a NUL in a reference": (lambda f: (f / "references" / "a.md").write_text("\0"), "references.a.md"),
    "a huge reference": (lambda f: (f / "references" / "a.md").write_bytes(b"x" * 500_000), "larger than"),
    "a long reference": (lambda f: (f / "references" / "a.md").write_text("x" * 100_001), "references.a.md"),
    "much together": (
        lambda f: [(f / "references" / f"{n}.md").write_text("x" * 99_000) for n in range(5)],
        "together",
    ),
    "deep folders": (deep, "nested too deep"),
    "many references": (many, "more than 50 files"),
    "a name that is no text": (undecodable, "references"),
    "a backslash": (lambda f: (f / "references" / "..\\a.md").write_text(""), "forward slashes"),
    "a name that hides": (lambda f: (f / "references" / "a\u202ecod.md").write_text(""), "control characters"),
}


@pytest.mark.parametrize(("spoil", "words"), HOSTILE.values(), ids=list(HOSTILE))
def test_a_folder_that_is_no_skill_is_refused_with_the_place(
    folder: Path, spoil: Callable[[Path], Any], words: str
) -> None:
    spoil(folder)

    message = refused(folder)

    assert message.startswith(f"{folder}: ")
    assert words in message
    assert "\n" not in message


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert "No such file" in refused(tmp_path / "none")
    assert "Not a directory" in refused(tmp_path / "file")


def test_what_is_written_is_read_as_it_was(folder: Path, tmp_path: Path) -> None:
    fields = read_tree(folder).fields
    target = tmp_path / "out" / "there"

    first = write_tree(fields, target, overwrite=False)
    again = write_tree(fields, target, overwrite=False)

    assert (first, again) == ("written", "unchanged")
    assert read_tree(target / "notes").fields == fields
    assert [path.name for path in target.iterdir()] == ["notes"]
    assert stat.S_IMODE((target / "notes" / "SKILL.md").stat().st_mode) & 0o111 == 0


def test_nothing_is_overwritten_unasked_and_what_is_no_part_of_a_skill_never(folder: Path) -> None:
    fields = read_tree(folder).fields.model_copy(update={"instructions": "Else.", "references": {"new.md": "N"}})
    (folder / "scripts").mkdir()
    (folder / "scripts" / "mine.sh").write_text("true\n")
    before = (folder / "SKILL.md").read_text()

    with pytest.raises(CliError, match="--overwrite"):
        write_tree(fields, folder.parent, overwrite=False)
    kept = (folder / "SKILL.md").read_text()
    replaced = write_tree(fields, folder.parent, overwrite=True)

    assert (kept, replaced) == (before, "replaced")
    assert read_tree(folder).fields == fields
    assert sorted(path.name for path in folder.iterdir()) == ["SKILL.md", "references", "scripts"]
    assert (folder / "scripts" / "mine.sh").exists()


def test_links_are_replaced_and_never_followed(folder: Path, tmp_path: Path) -> None:
    fields = read_tree(folder).fields
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "a.md").write_text("Mine.")
    (folder / "SKILL.md").unlink()
    (folder / "SKILL.md").symlink_to(precious / "a.md")
    linked_references(folder)
    (folder / "references").unlink()
    (folder / "references").symlink_to(precious)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes").symlink_to(precious)

    write_tree(fields, folder.parent, overwrite=True)
    with pytest.raises(CliError, match="no folder"):
        write_tree(fields, elsewhere, overwrite=True)

    assert read_tree(folder).fields == fields
    assert (precious / "a.md").read_text() == "Mine."
    assert [path.name for path in precious.iterdir()] == ["a.md"]


def skill(**changes: Any) -> dict[str, Any]:
    """The folder's skill as it is stored."""
    stored = {
        **view("SkillView"),
        "id": "s1",
        "agentId": "researcher",
        "name": "notes",
        "description": "Write notes.",
        "instructions": "# Notes\n\nSee references/a.md.",
        "license": "MIT",
        "compatibility": None,
        "allowedTools": None,
        "metadata": {"version": "1"},
        "references": {"a.md": "ä\r\n", "deep/b.txt": ""},
        "provenance": None,
        "enabled": True,
        "revision": 2,
    }
    return {**stored, **changes}


def holds(peer: Peer, *skills: dict[str, Any]) -> None:
    def made(asked: Asked) -> dict[str, Any]:
        return skill(**asked.body)

    peer.answers["skill-list"] = {"items": list(skills), "nextCursor": None}
    peer.answers["skill-import"] = peer.answers["skill-enable"] = made


def changes(peer: Peer) -> list[tuple[str, Any]]:
    return [(asked.method, asked.body) for asked in peer.asked if asked.method != "GET"]


def test_a_new_skill_is_added_with_all_that_it_has(peer: Peer, run: Run, folder: Path) -> None:
    holds(peer)
    (folder / "scripts").mkdir()

    result = run("skill-import", "researcher", str(folder), "--provenance", "https://example.org")

    [(method, body)] = changes(peer)
    assert method == "POST"
    assert body == {
        "name": "notes",
        "description": "Write notes.",
        "instructions": "# Notes\n\nSee references/a.md.",
        "license": "MIT",
        "metadata": {"version": "1"},
        "references": {"a.md": "ä\r\n", "deep/b.txt": ""},
        "provenance": "https://example.org",
    }
    assert result.stdout == "notes: added, 2 references\n"
    assert "left out" in result.stderr
    assert "scripts" in result.stderr


def test_one_that_is_stored_so_is_left_as_it_is(peer: Peer, run: Run, folder: Path) -> None:
    holds(peer, skill(enabled=False, provenance="Mine."))

    result = run("skill-import", "researcher", str(folder))

    assert changes(peer) == []
    assert result.stdout == "notes: unchanged, 2 references, disabled\n"


def test_one_that_differs_is_changed_by_its_revision_and_stays_disabled(peer: Peer, run: Run, folder: Path) -> None:
    holds(peer, skill(enabled=False, license=None, compatibility="Needs git.", references={}))

    result = run("skill-import", "researcher", str(folder), "--json")

    references = {"a.md": "ä\r\n", "deep/b.txt": ""}
    assert changes(peer) == [
        ("PATCH", {"revision": 2, "license": "MIT", "compatibility": None, "references": references})
    ]
    [told] = json.loads(result.stdout)["items"]
    assert (told["name"], told["outcome"], told["leftOut"]) == ("notes", "changed", [])


def test_when_one_cannot_be_read_none_is_stored(peer: Peer, run: Run, folder: Path, tmp_path: Path) -> None:
    holds(peer)
    other = tmp_path / "other"
    other.mkdir()

    bad, twice = (
        run("skill-import", "researcher", str(folder), str(other)),
        run("skill-import", "r", *[str(folder)] * 2),
    )

    assert (bad.exit_code, twice.exit_code) == (1, 1)
    assert "there is no SKILL.md" in bad.stderr
    assert "Two of the folders" in twice.stderr
    assert not peer.asked


def test_skills_are_written_below_a_folder_all_or_those_named(
    peer: Peer, run: Run, folder: Path, tmp_path: Path
) -> None:
    holds(peer, skill(), skill(name="other", references={}))

    every = run("skill-export", "researcher", str(tmp_path / "all"))
    one = run("skill-export", "researcher", "other", str(tmp_path / "one"), "--json")
    again = run("skill-import", "researcher", str(tmp_path / "all" / "notes"))

    assert every.stdout == f"notes: written, {tmp_path}/all/notes\nother: written, {tmp_path}/all/other\n"
    assert json.loads(one.stdout)["items"] == [
        {"name": "other", "outcome": "written", "folder": f"{tmp_path}/one/other"}
    ]
    assert (tmp_path / "all" / "notes" / "references" / "a.md").read_bytes() == "ä\r\n".encode()
    assert not (tmp_path / "one" / "other" / "references").exists()
    assert again.stdout == "notes: unchanged, 2 references\n"


@pytest.mark.parametrize(
    "odd",
    [
        {"name": "../up"},
        {"name": ".."},
        {"references": {"../../up.md": "x"}},
        {"references": {"/up.md": "x"}},
        {"references": {"a": "x", "a/b": "y"}},
    ],
)
def test_a_server_cannot_write_beside_the_folder(peer: Peer, run: Run, tmp_path: Path, odd: dict[str, Any]) -> None:
    holds(peer, skill(**odd))
    target = tmp_path / "a" / "b"

    result = run("skill-export", "researcher", str(target))

    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert not list(tmp_path.rglob("up*"))
    assert not target.exists()
