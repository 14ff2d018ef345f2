"""`popagent settings-show` and `settings-patch`: what the agents' runs go by."""

from __future__ import annotations

from typing import Any, Final

import click

from popagent_cli.changes import parsed_changes, shown, tell_changes
from popagent_cli.client import Client, with_client
from popagent_cli.printing import as_json_option, duration, note, print_json, print_table
from popagent_kit.settings import command

SECTIONS: Final = ("agent-runtime",)
EXAMPLE: Final = """settings-patch agent-runtime '{"supervisorMaxSteps":64}'"""
CEILINGS: Final = ("supervisorMaxSteps", "specialistMaxSteps")

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
        print_table(["SETTING", "VALUE"], [[name, shown(value)] for name, value in view.items()])


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
    wanted = parsed_changes(changes, EXAMPLE)
    before = client.get(_path(section))
    after = client.send("PATCH", _path(section), wanted)
    tell_changes(before, after, as_json=as_json)
    _warn_of_short_tasks(before, after)


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
