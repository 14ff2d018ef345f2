"""What a person wants changed, written as a JSON object, and what became of it."""

from __future__ import annotations

from typing import Any, Final

import click

from popagent_cli.client import Client
from popagent_cli.errors import CliError
from popagent_cli.piped import text_of
from popagent_cli.printing import print_json
from popagent_cli.safe_text import one_safe_line
from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_kit.settings import command

STAMPS: Final = frozenset({"revision", "updatedAt"})
TEXT_CHARACTERS: Final = 300
MOST_NAMED: Final = 10


def parsed_changes(text: str, example: str) -> dict[str, Any]:
    """Return the object that `text` holds, or standard input where `text` is `-`; `example` is a command that works.

    Raises:
        CliError: It is not JSON, no object, or empty.
    """
    try:
        value = json.loads(text_of(text))
    except MalformedJsonError as error:
        raise CliError(f"CHANGES is not JSON; put single quotes around it: {command(example)}") from error
    if not isinstance(value, dict) or not value:
        raise CliError(f"CHANGES must be a JSON object with at least one field: {command(example)}")
    return value


def change_listed(
    client: Client, path: str, name_or_id: str, wanted: dict[str, Any], *, what: str, listing: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Change one of what `path` lists without pages, as it is now; return it as it was and as it is.

    A revision in `wanted` must be the stored one.

    Raises:
        CliError: None has the id or the name, or several have the name.
    """
    before = find_listed(client, path, name_or_id, what=what, listing=listing)
    after = client.send("PATCH", f"{path}/{before['id']}", {"revision": before["revision"], **wanted})
    return before, after


def find_listed(client: Client, path: str, name_or_id: str, *, what: str, listing: str) -> dict[str, Any]:
    """Return what has this id of all that `path` lists without pages, else what alone has this name.

    Raises:
        CliError: None has it, or several have the name; the sentence says which there are.
    """
    items: list[dict[str, Any]] = client.get(path)["items"]
    found = [row for row in items if row["id"] == name_or_id]
    found = found or [row for row in items if row["name"].casefold() == name_or_id.casefold()]
    if len(found) == 1:
        return found[0]
    said = one_safe_line(name_or_id, 100)
    if found:
        raise CliError(f"Several have the name {said}; give the id: {', '.join(row['id'] for row in found)}.")
    names = ", ".join(one_safe_line(row["name"], 60) for row in items[:MOST_NAMED]) or "none yet"
    raise CliError(f"There is no {what} {said}. There are: {names}. `{command(listing)}` lists them.")


def tell_changes(before: dict[str, Any], after: dict[str, Any], *, as_json: bool) -> None:
    """Print each field that has another value now, or the whole where JSON was asked for."""
    if as_json:
        print_json(after)
        return
    changed = [name for name in after if name not in STAMPS and after[name] != before.get(name)]
    for name in changed:
        click.echo(f"{name}  {shown(before.get(name))} → {shown(after[name])}")
    if not changed:
        click.echo("Nothing changed: these are the stored values already.")


def shown(value: Any) -> str:
    """Return a value as one line of bounded length."""
    if value is None:
        return "(not set)"
    return one_safe_line(value if isinstance(value, str) else json.dumps(value).decode(), TEXT_CHARACTERS)
