"""`popagent history`: a whole conversation, to keep or to read elsewhere."""

from __future__ import annotations

from typing import Any

import click

from popagent_cli.client import ID, Client, with_client
from popagent_cli.printing import as_json_option, print_json
from popagent_cli.safe_text import one_safe_line
from popagent_cli.transcript import as_markdown


@click.command()
@click.argument("session", type=ID)
@as_json_option
@with_client
def history(client: Client, session: str, as_json: bool) -> None:
    """Export a whole conversation as Markdown or JSON."""
    view, messages = all_messages(client, session)
    if as_json:
        print_json({**view, "messages": messages, "previousCursor": None})
        return
    click.echo(f"# {one_safe_line(view['title']) or 'Conversation'}\n")
    click.echo(as_markdown(messages) or "There are no messages yet.")


def all_messages(client: Client, session: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the session and every message of its branch, oldest first."""
    view: dict[str, Any] = client.get(f"/api/sessions/{session}", limit=200)
    pages = [view["messages"]]
    before = view["previousCursor"]
    while before is not None:
        page = client.get(f"/api/sessions/{session}", limit=200, before=before)
        pages.append(page["messages"])
        before = page["previousCursor"]
    return view, [message for page in reversed(pages) for message in page]
