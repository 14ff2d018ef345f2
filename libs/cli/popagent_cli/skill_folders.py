"""`popagent skill-import` and `skill-export`: skills of an agent from and to folders with a SKILL.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from popagent_cli.changes import shown
from popagent_cli.client import Client, given, with_client
from popagent_cli.errors import CliError
from popagent_cli.printing import as_json_option, note, print_json
from popagent_cli.safe_text import one_safe_line
from popagent_cli.skill_file import SkillFileError
from popagent_cli.skill_tree import SkillTree, checked, read_tree, write_tree
from popagent_cli.skills import agent_argument, find_skill, skills_of
from popagent_proto.chat.skills import SkillFields

# What a folder says of a skill; whether it is enabled, and where it came from, is said elsewhere.
OF_THE_FOLDER: Final = frozenset(SkillFields.model_fields) - {"enabled", "provenance"}


@click.command(name="skill-import")
@agent_argument
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--provenance", help="Where they come from, in words or as an address.")
@as_json_option
@with_client
def import_skills(client: Client, agent: str, folders: tuple[Path, ...], provenance: str | None, as_json: bool) -> None:
    """Store the skills that lie in folders; the agent's next run has them.

    Each FOLDER has the name of its skill, and holds SKILL.md and texts below references/:

    \b
      popagent skill-import researcher .agents/skills/*

    One that the agent has already is changed to what the folder holds, and stays enabled or disabled. When one cannot
    be read, none is stored.
    """
    trees = [read_tree(folder) for folder in folders]
    names = [tree.fields.name for tree in trees]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise CliError(f"Two of the folders hold a skill named {twice}.")
    items: list[dict[str, Any]] = skills_of(client, agent)["items"]
    stored = {skill["name"]: skill for skill in items}
    told = []
    for tree in trees:
        outcome, skill = _store(client, agent, tree, stored.get(tree.fields.name), provenance)
        told.append({"name": skill["name"], "outcome": outcome, "leftOut": tree.left_out, "skill": skill})
        if not as_json:
            _tell(told[-1])
    if as_json:
        print_json({"items": told})


@click.command(name="skill-export")
@agent_argument
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--overwrite", is_flag=True, help="Replace SKILL.md and references/ of a folder that holds another one.")
@as_json_option
@with_client
def export_skills(
    client: Client, agent: str, names: tuple[str, ...], folder: Path, *, overwrite: bool, as_json: bool
) -> None:
    """Write skills of an agent below FOLDER, all of them or those named."""
    items: list[dict[str, Any]] = (
        [find_skill(client, agent, name) for name in names] if names else skills_of(client, agent)["items"]
    )
    if not items:
        note(f"{agent} has no skill.")
    told = []
    for skill in items:
        fields = _fields_of(skill)
        outcome = write_tree(fields, folder, overwrite=overwrite)
        told.append({"name": fields.name, "outcome": outcome, "folder": str(folder / fields.name)})
        if not as_json:
            click.echo(f"{fields.name}: {outcome}, {one_safe_line(str(folder / fields.name), 4_096)}")
    if as_json:
        print_json({"items": told})


def _store(
    client: Client, agent: str, tree: SkillTree, stored: dict[str, Any] | None, provenance: str | None
) -> tuple[str, dict[str, Any]]:
    wire = tree.fields.wire()
    wanted = {_wire_name(name): wire[_wire_name(name)] for name in OF_THE_FOLDER}
    if provenance is not None:
        wanted["provenance"] = provenance
    if stored is None:
        return "added", client.send("POST", f"/api/agents/{agent}/skills", given(wanted))
    changes = {name: value for name, value in wanted.items() if stored[name] != value}
    if not changes:
        return "unchanged", stored
    body = {"revision": stored["revision"], **changes}
    return "changed", client.send("PATCH", f"/api/agents/{agent}/skills/{stored['id']}", body)


def _wire_name(name: str) -> str:
    return SkillFields.model_fields[name].alias or name


def _fields_of(skill: dict[str, Any]) -> SkillFields:
    """Return what is written; what a server says is not believed further than a file would be."""
    fields = {_wire_name(name): skill[_wire_name(name)] for name in SkillFields.model_fields}
    try:
        return checked(fields)
    except SkillFileError as error:
        raise CliError(f"{shown(skill['name'])} cannot be written: {one_safe_line(str(error), 300)}.") from error


def _tell(stored: dict[str, Any]) -> None:
    skill = stored["skill"]
    off = "" if skill["enabled"] else ", disabled"
    texts = len(skill["references"])
    count = f", {texts} reference{'s' if texts > 1 else ''}" if texts else ""
    click.echo(f"{skill['name']}: {stored['outcome']}{count}{off}")
    if stored["leftOut"]:
        note(f"{skill['name']}: left out, since agents get texts alone: {shown(', '.join(stored['leftOut']))}")
