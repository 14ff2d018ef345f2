"""`popagent models`: which models can answer."""

from __future__ import annotations

import click

from popagent_cli.client import Client, with_client
from popagent_cli.printing import as_json_option, note, print_json, print_table
from popagent_cli.safe_text import one_safe_line
from popagent_kit.settings import command


@click.command()
@as_json_option
@with_client
def models(client: Client, as_json: bool) -> None:
    """Show which models can answer."""
    view = client.get("/api/models")
    if as_json:
        print_json(view)
        return
    windows = view["contextWindows"]
    rows = [
        [model, f"{windows[model]:,}" if model in windows else "unknown", "*" if model == view["defaultModel"] else ""]
        for model in view["models"]
    ]
    if rows:
        print_table(["MODEL", ">CONTEXT TOKENS", "DEFAULT"], rows, flexible=0)
    elif view["known"]:
        note("The model endpoint answers, but offers no model.")
    if not view["known"]:
        note(f"The model endpoint does not say which models it has; any id may be tried: {command('chat --model ID')}")
    if view["note"]:
        note(one_safe_line(view["note"], 600))
