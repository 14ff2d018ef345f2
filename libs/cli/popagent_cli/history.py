"""`popagent history`: a whole conversation, to keep or to read elsewhere."""

from __future__ import annotations

import click

from popagent_cli.client import ID, Client, with_client
from popagent_cli.printing import as_json_option
from popagent_cli.safe_text import SafeText, safe_json

# The pages of a long conversation come one after another.
SILENCE_S = 30.0


@click.command()
@click.argument("session", type=ID)
@as_json_option
@with_client
def history(client: Client, session: str, as_json: bool) -> None:
    """Export a whole conversation as Markdown or JSON."""
    shown = safe_json if as_json else SafeText().feed
    params = {"format": "json" if as_json else "markdown"}
    with client.stream("GET", f"/api/sessions/{session}/export", params=params, silence_s=SILENCE_S) as response:
        for text in response.iter_text():
            click.echo(shown(text), nl=False)
    if as_json:
        click.echo()
