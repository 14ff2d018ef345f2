"""`popagent docs-search`: sections of pages, with why they were found."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click

from popagent_cli.client import Client, with_client
from popagent_cli.printing import as_json_option, dim, note, print_json
from popagent_cli.safe_text import one_safe_line
from popagent_cli.workspaces import find_workspace

# Private signs stand around what was found until the lines are made.
_BEGINS: Final = "\ue000"
_ENDS: Final = "\ue001"
_NO_BOUNDS: Final = {ord(_BEGINS): None, ord(_ENDS): None}
_UNDERLINED: Final = re.compile(f"{_BEGINS}([^{_BEGINS}{_ENDS}]*){_ENDS}")
# What stands below the head of a table is made of these.
_RULED: Final = frozenset("|:- \t")
# What begins a line of its own among prose.
_ITEM: Final = re.compile(r"(?:[-*+>]|#+|\d+[.)])\s")


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
        for line in _shown(hit["snippet"]):
            click.echo(f"  {line}")
        click.echo()


def _shown(snippet: list[dict[str, Any]]) -> list[str]:
    """Return a snippet as lines, with what was found marked; prose is one line, tables, lists and code keep theirs."""
    marked = "".join(_bounded(part["text"].translate(_NO_BOUNDS), marked=part["marked"]) for part in snippet)
    lines: list[str] = []
    is_code = was_block = False
    for line in marked.split("\n"):
        plain = line.translate(_NO_BOUNDS).strip()
        is_fence = plain.startswith(("```", "~~~"))
        is_code ^= is_fence
        is_block = is_code or is_fence or plain.startswith("|") or line.startswith(("    ", "\t"))
        if is_fence or ("--" in plain and _RULED.issuperset(plain)):
            was_block = True
        elif is_block or was_block or not plain or not lines:
            lines.append(line)
            was_block = is_block or not plain
        elif _ITEM.match(plain):
            lines.append(line)
        else:
            lines[-1] += f" {line}"
    shown = (one_safe_line(line, 400) for line in lines)
    return [_underlined(line) for line in shown if line]


def _underlined(line: str) -> str:
    """Return a line with what was found underlined; a bound whose other one was cut off goes."""
    return _UNDERLINED.sub(lambda found: click.style(found[1], underline=True), line).translate(_NO_BOUNDS)


def _bounded(text: str, *, marked: bool) -> str:
    return f"{_BEGINS}{text.replace(chr(10), ' ')}{_ENDS}" if marked else text
