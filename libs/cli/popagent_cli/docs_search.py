"""`popagent docs-search`: sections of pages, with why they were found."""

from __future__ import annotations

import sys
from typing import Any

import click

from popagent_cli.client import Client, with_client
from popagent_cli.printing import as_json_option, dim, note, print_json
from popagent_cli.safe_text import one_safe_line
from popagent_cli.workspaces import find_workspace


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--workspace", metavar="NAME-OR-ID", help="Only there; else everywhere.")
@click.option("--folder", help="Only below this folder of the workspace.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(1, 50))
@as_json_option
@with_client
def docs_search(
    client: Client, words: tuple[str, ...], *, workspace: str | None, folder: str | None, limit: int, as_json: bool
) -> None:
    """Find sections of pages, the best first."""
    where = None if workspace is None else find_workspace(client, workspace)["id"]
    found = client.get("/api/docs/search", q=" ".join(words), workspaceId=where, folder=folder, limit=limit)
    if as_json:
        print_json(found)
        return
    for corrected in found["corrected"]:
        note(one_safe_line(corrected))
    if not found["items"]:
        note("No page has any of these words.")
    for hit in found["items"]:
        heading = " › ".join([hit["path"], *hit["heading"]])
        click.echo(click.style(one_safe_line(heading), bold=True) + dim(f"  {hit['workspaceId']}", sys.stdout))
        click.echo(f"  {_shown(hit['snippet'])}\n")


def _shown(snippet: list[dict[str, Any]]) -> str:
    """Return a snippet as one line, with what was found marked."""
    pieces = []
    for part in snippet:
        text = part["text"].replace("\n", " ")
        lead, trail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        inner = one_safe_line(text, 400)
        pieces.append(click.style(inner, underline=True) if part["marked"] else f"{lead[:1]}{inner}{trail[:1]}")
    return "".join(pieces).strip()
