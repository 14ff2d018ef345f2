"""`popagent health`: how every service is."""

from __future__ import annotations

import sys

import click

from popagent_cli.client import Client, with_client
from popagent_cli.errors import FAILED
from popagent_cli.printing import as_json_option, note, print_json, print_table
from popagent_kit.remedies import is_trouble


@click.command()
@as_json_option
@with_client
def health(client: Client, as_json: bool) -> None:
    """Show how every service is; exit code 1 when not ready.

    Ready means that the application's and the observability PostgreSQL answer.
    """
    status, view = client.answer("/api/health")
    if as_json:
        print_json(view)
    else:
        details = view.get("details", {})
        rows = [
            [name, _in_short(state), details.get(name, "") if state == "ok" else state]
            for name, state in view["checks"].items()
        ]
        for service in view["services"]:
            bad = [f"{name}: {state}" for name, state in service["checks"].items() if is_trouble(state)]
            rows.append([service["service"], "ok" if service["ready"] else "not ready", "; ".join(bad)])
        print_table(["PART", "STATE", "WHY"], rows)
        for problem in view.get("problems", []):
            note(f"{problem['name']}: {problem['stillWorks']} To do: {problem['fix']}")
    sys.exit(0 if status == 200 else FAILED)


def _in_short(state: str) -> str:
    if state == "ok":
        return "ok"
    return "not ok" if is_trouble(state) else "–"
