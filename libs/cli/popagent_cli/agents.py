"""`popagent agents`, `agent-health` and `company`: who the agents are, and whether all is well with them."""

from __future__ import annotations

import sys
from typing import Any, Final

import click

from popagent_cli.changes import parsed_changes, tell_changes
from popagent_cli.client import Client, with_client
from popagent_cli.errors import FAILED, CliError
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table
from popagent_cli.safe_text import one_safe_line, safe
from popagent_kit.settings import command
from popagent_local.groups import Group

EXAMPLE: Final = """agents patch researcher '{"workspaceAccess":"read-only"}'"""
# Paragraphs are told whole, below the table.
PARAGRAPHS: Final = ("instructions",)

agent_argument = click.argument("agent", metavar="NAME-OR-ID")


@click.group(cls=Group, invoke_without_command=True)
@as_json_option
@click.option("--url", "nearer_url", default=None, hidden=True)
@click.pass_context
def agents(ctx: click.Context, as_json: bool, nearer_url: str | None) -> None:
    """Who the agents are; change what makes them so."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_agents, as_json=as_json, nearer_url=nearer_url)


@agents.command(name="list")
@as_json_option
@with_client
def list_agents(client: Client, as_json: bool) -> None:
    """List the agents, the orchestrator first."""
    page = client.get("/api/agents")
    if as_json:
        print_json(page)
        return
    passed_over = _passed_over(client, page["items"])
    rows = [
        [
            row["id"],
            row["name"],
            row["workspaceAccess"],
            "yes" if row["delegable"] else "no",
            "(inherited)" if row["id"] in passed_over else row["modelOverride"] or "(inherited)",
            "as it came" if row["revision"] == 0 else f"edited {local_time(row['updatedAt'])}",
            ", ".join(row["tools"]) or "none",
        ]
        for row in page["items"]
    ]
    print_table(["ID", "NAME", "WORKSPACE", "DELEGABLE", "MODEL", "PROFILE", "TOOLS"], rows)
    for agent, model in passed_over.items():
        note(f"{agent} uses the model of the chat: the server does not offer its preset {one_safe_line(model, 200)}.")


def _passed_over(client: Client, items: list[dict[str, Any]]) -> dict[str, str]:
    """Return the preset models that are not used, since the model server does not offer them, by agent."""
    presets = {
        row["id"]: str(row["modelOverride"]) for row in items if row["modelOverride"] and row["overrideIsSeeded"]
    }
    if not presets:
        return {}
    try:
        findings = client.get("/api/agents/health")["findings"]
    except CliError as error:
        note(f"Whether the preset models are offered is not known: {error.message}")
        return {}
    inherits = {each["agentId"] for each in findings if each["code"] == "model_inherited"}
    return {agent: model for agent, model in presets.items() if agent in inherits}


@agents.command()
@agent_argument
@as_json_option
@with_client
def show(client: Client, agent: str, as_json: bool) -> None:
    """Show the whole profile of an agent."""
    found = _find(client, agent)
    if as_json:
        print_json(found)
        return
    rows = [[name, _value(value)] for name, value in found.items() if name not in PARAGRAPHS]
    print_table(["FIELD", "VALUE"], rows)
    for name in PARAGRAPHS:
        click.echo(f"\n{name}\n{safe(found[name])}")


@agents.command()
@agent_argument
@click.argument("changes")
@as_json_option
@with_client
def patch(client: Client, agent: str, changes: str, as_json: bool) -> None:
    """Change the profile of an agent; its next run uses it.

    CHANGES is a JSON object, or - to read one from standard input; what it does not name stays as it is:

    \b
      popagent agents patch researcher '{"workspaceAccess":"read-only"}'

    A revision in it must be the stored one; without it the newest is changed.
    """
    wanted = parsed_changes(changes, EXAMPLE)
    before = _find(client, agent)
    after = client.send("PATCH", f"/api/agents/{before['id']}", {"revision": before["revision"], **wanted})
    tell_changes(before, after, as_json=as_json)


@click.command(name="agent-health")
@as_json_option
@with_client
def agent_health(client: Client, as_json: bool) -> None:
    """Check the profiles and skills of the agents; exit code 1 when one has a fault.

    A note tells something that needs no repair, and leaves the exit code at 0.
    """
    view = client.get("/api/agents/health")
    if as_json:
        print_json(view)
    else:
        _tell_health(view)
    sys.exit(0 if view["ok"] else FAILED)


@click.command()
@as_json_option
@with_client
def company(client: Client, as_json: bool) -> None:
    """Show the company's roster by department."""
    view = client.get("/api/company")
    if as_json:
        print_json(view)
        return
    rows = [
        [department["name"], member["name"], member["title"], _standing(member), member["id"]]
        for department in view["departments"]
        for member in department["members"]
    ]
    print_table(["DEPARTMENT", "NAME", "TITLE", "AGENT", "ID"], rows, flexible=1)


def _find(client: Client, agent_id: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = client.get("/api/agents")["items"]
    found = [row for row in items if row["id"] == agent_id]
    found = found or [row for row in items if row["name"].casefold() == agent_id.casefold()]
    if len(found) != 1:
        raise CliError(f"There is no agent {agent_id!r}. There are: {', '.join(row['id'] for row in items)}.")
    return found[0]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(not set)" if value is None else str(value)


def _tell_health(view: dict[str, Any]) -> None:
    findings = view["findings"]
    if findings:
        rows = [[each["agentId"], each["severity"], each["code"], each["message"]] for each in findings]
        print_table(["AGENT", "WEIGHT", "CODE", "WHAT"], rows)
    faults = [each for each in findings if each["severity"] == "fault"]
    for each in faults:
        note(f"{each['agentId']}: {one_safe_line(each['fix'], 300)}")
    if not view["modelsKnown"]:
        note("The model server does not list its models, so the agents' models were not checked.")
    if not faults:
        skills = view.get("skills", 0)
        click.echo(f"{view['agents']} agents and {skills} enabled skill{'' if skills == 1 else 's'}, no fault.")
        return
    if any(each["field"] and not each.get("skillId") for each in faults):
        note(f"Repair a profile: {command('agents patch ID CHANGES')}")
    if any(each.get("skillId") for each in faults):
        note(f"Look at a skill: {command('skill-show AGENT NAME')}")


def _standing(member: dict[str, Any]) -> str:
    if not member["isAgent"]:
        return "-"
    return "delegable" if member["delegable"] else "agent"
