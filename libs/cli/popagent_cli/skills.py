"""`popagent skill-…`: the written procedures of an agent, as they are stored."""

from __future__ import annotations

from typing import Any, Final

import click

from popagent_cli.client import ID, Client, with_client
from popagent_cli.errors import CliError, RefusedError
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table, size, tell
from popagent_cli.safe_text import one_safe_line, safe
from popagent_kit.settings import command

# Told whole, below the table.
PARAGRAPHS: Final = ("description", "instructions")

agent_argument = click.argument("agent", type=ID)


@click.command(name="skill-list")
@agent_argument
@as_json_option
@with_client
def list_skills(client: Client, agent: str, as_json: bool) -> None:
    """List the skills of an agent, enabled and disabled."""
    page = skills_of(client, agent)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note(f"{agent} has no skill. Bring one: {command(f'skill-import {agent} FOLDER')}")
        return
    rows = [
        [
            row["name"],
            "on" if row["enabled"] else "off",
            _whose(row),
            str(len(row["references"]) or ""),
            local_time(row["updatedAt"]),
            row["description"],
        ]
        for row in page["items"]
    ]
    print_table(["NAME", "", "FROM", ">REFERENCES", "CHANGED", "WHAT FOR"], rows)


@click.command(name="skill-show")
@agent_argument
@click.argument("name")
@click.argument("path", required=False)
@as_json_option
@with_client
def show(client: Client, agent: str, name: str, path: str | None, as_json: bool) -> None:
    """Show a whole skill, or one of its references.

    PATH is that of a reference, as the skill lists it: guide.md.
    """
    skill = find_skill(client, agent, name)
    if path is not None:
        text = _reference(skill, path)
        tell({"path": path, "text": text}, safe(text), as_json=as_json)
        return
    if as_json:
        print_json(skill)
        return
    print_table(
        ["FIELD", "VALUE"],
        [[field, _value(field, value)] for field, value in skill.items() if field not in PARAGRAPHS],
    )
    for field in PARAGRAPHS:
        click.echo(f"\n{field}\n{safe(skill[field])}")


@click.command(name="skill-enable")
@agent_argument
@click.argument("name")
@as_json_option
@with_client
def enable(client: Client, agent: str, name: str, as_json: bool) -> None:
    """Let the agent's next run have a skill."""
    _switch(client, agent, name, enabled=True, as_json=as_json)


@click.command(name="skill-disable")
@agent_argument
@click.argument("name")
@as_json_option
@with_client
def disable(client: Client, agent: str, name: str, as_json: bool) -> None:
    """Keep a skill out of the agent's runs; it stays stored."""
    _switch(client, agent, name, enabled=False, as_json=as_json)


@click.command(name="skill-delete")
@agent_argument
@click.argument("name")
@as_json_option
@with_client
def delete(client: Client, agent: str, name: str, as_json: bool) -> None:
    """Delete a skill; runs that have begun keep it to their end."""
    skill = find_skill(client, agent, name)
    gone = client.send("DELETE", f"/api/agents/{agent}/skills/{skill['id']}")
    tell(gone, f"{skill['name']} is deleted", as_json=as_json)


def skills_of(client: Client, agent: str) -> dict[str, Any]:
    """Return the list of an agent's skills.

    Raises:
        CliError: There is no such agent; the sentence says which there are.
    """
    try:
        return client.pages(f"/api/agents/{agent}/skills", 10_000)
    except RefusedError as refused:
        if refused.status != 404:
            raise
        ids = ", ".join(row["id"] for row in client.get("/api/agents")["items"])
        raise CliError(f"There is no agent {agent}. There are: {ids}.") from refused


def find_skill(client: Client, agent: str, name_or_id: str) -> dict[str, Any]:
    """Return the agent's skill with this name, else with this id.

    Raises:
        CliError: It has none.
    """
    items: list[dict[str, Any]] = skills_of(client, agent)["items"]
    for field in ("name", "id"):
        for skill in items:
            if skill[field] == name_or_id:
                return skill
    known = ", ".join(one_safe_line(skill["name"], 64) for skill in items) or "none"
    raise CliError(f"{agent} has no skill {one_safe_line(name_or_id, 64)!r}. It has: {known}.")


def _switch(client: Client, agent: str, name: str, *, enabled: bool, as_json: bool) -> None:
    skill = find_skill(client, agent, name)
    body = {"revision": skill["revision"], "enabled": enabled}
    after = client.send("PATCH", f"/api/agents/{agent}/skills/{skill['id']}", body)
    state = "enabled" if after["enabled"] else "disabled"
    sentence = f"{after['name']} is {state}" if skill["enabled"] != enabled else f"{after['name']} was {state} already"
    tell(after, sentence, as_json=as_json)


def _whose(skill: dict[str, Any]) -> str:
    return "learned" if skill["evolutionManaged"] else one_safe_line(skill["provenance"] or "", 40)


def _reference(skill: dict[str, Any], path: str) -> str:
    texts: dict[str, str] = skill["references"]
    if path not in texts:
        known = ", ".join(one_safe_line(each, 200) for each in sorted(texts)) or "none"
        raise CliError(f"{skill['name']} has no reference {one_safe_line(path, 200)!r}. It has: {known}.")
    return texts[path]


def _value(field: str, value: Any) -> str:
    if field == "references":
        return ", ".join(f"{path} ({size(len(text.encode()))})" for path, text in sorted(value.items())) or "none"
    if field == "metadata":
        return ", ".join(f"{name}: {text}" for name, text in sorted(value.items())) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(not set)" if value is None else str(value)
