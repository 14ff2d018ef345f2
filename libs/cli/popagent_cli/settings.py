"""`popagent settings-show` and `settings-patch`: what the agents' runs go by."""

from __future__ import annotations

from typing import Any, Final

import click

from popagent_cli.client import Client, with_client
from popagent_cli.errors import CliError
from popagent_cli.printing import as_json_option, duration, note, print_json, print_table
from popagent_cli.safe_text import one_safe_line
from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_kit.settings import command

SECTIONS: Final = ("agent-runtime",)
EXAMPLE: Final = """settings-patch agent-runtime '{"supervisorMaxSteps":64}'"""
CEILINGS: Final = ("supervisorMaxSteps", "specialistMaxSteps")
STAMPS: Final = frozenset({"revision", "updatedAt"})
TEXT_CHARACTERS: Final = 300

section_argument = click.argument("section", type=click.Choice(SECTIONS))


@click.command(name="settings-show")
@section_argument
@as_json_option
@with_client
def show(client: Client, section: str, as_json: bool) -> None:
    """Show the settings of a section."""
    view = client.get(_path(section))
    if as_json:
        print_json(view)
    else:
        print_table(["SETTING", "VALUE"], [[name, _shown(value)] for name, value in view.items()])


@click.command(name="settings-patch")
@section_argument
@click.argument("changes")
@as_json_option
@with_client
def patch(client: Client, section: str, changes: str, as_json: bool) -> None:
    """Change settings of a section.

    CHANGES is a JSON object; what it does not name stays as it is:

    \b
      popagent settings-patch agent-runtime '{"supervisorMaxSteps":64}'
    """
    wanted = _parsed(changes)
    before = client.get(_path(section))
    after = client.send("PATCH", _path(section), wanted)
    if as_json:
        print_json(after)
    else:
        changed = [name for name in after if name not in STAMPS and after[name] != before.get(name)]
        for name in changed:
            click.echo(f"{name}  {_shown(before.get(name))} → {_shown(after[name])}")
        if not changed:
            click.echo("Nothing changed: these are the stored values already.")
    _warn_of_short_tasks(before, after)


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except MalformedJsonError as error:
        raise CliError(f"CHANGES is not JSON; put single quotes around it: {command(EXAMPLE)}") from error
    if not isinstance(value, dict) or not value:
        raise CliError(f"CHANGES must be a JSON object with at least one setting: {command(EXAMPLE)}")
    return value


def _warn_of_short_tasks(before: dict[str, Any], after: dict[str, Any]) -> None:
    risen = [name for name in CEILINGS if after.get(name, 0) > before.get(name, 0)]
    limit_ms = after.get("taskTimeoutMs", 0)
    if not risen or limit_ms > before.get("taskTimeoutMs", 0):
        return
    longer = f"settings-patch agent-runtime '{{\"taskTimeoutMs\":{min(2 * limit_ms, 86_400_000)}}}'"
    note(
        f"A background task ends after taskTimeoutMs ({limit_ms}, that is {duration(limit_ms)}), however many steps "
        f"are left. A higher ceiling for background work usually needs a longer one: {command(longer)}"
    )


def _path(section: str) -> str:
    return f"/api/settings/{section}"


def _shown(value: Any) -> str:
    if value is None:
        return "(not set)"
    return one_safe_line(value if isinstance(value, str) else json.dumps(value).decode(), TEXT_CHARACTERS)
