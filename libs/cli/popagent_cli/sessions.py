"""`popagent sessions`: conversations as people see them."""

from __future__ import annotations

from typing import Any

import click

from popagent_cli.client import ID, Client, given, with_client
from popagent_cli.deleting import ask_before, yes_option
from popagent_cli.errors import CliError
from popagent_cli.jobs import followed
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line
from popagent_cli.transcript import NAMES, as_markdown
from popagent_cli.workspaces import find_workspace
from popagent_kit.settings import command
from popagent_local.groups import Group

session_argument = click.argument("session", type=ID)


@click.group(cls=Group)
def sessions() -> None:
    """Find, name, archive and delete conversations."""


@sessions.command(name="list")
@click.option("--search", metavar="WORDS", help="Only those whose title or messages hold every word.")
@click.option("--archived", is_flag=True, help="Those that were put away.")
@click.option("--workspace", "workspace", help="Only those of one workspace, by name or id.")
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
@with_client
def list_sessions(
    client: Client, *, search: str | None, archived: bool, workspace: str | None, limit: int, as_json: bool
) -> None:
    """List sessions, newest activity first."""
    workspace_id = find_workspace(client, workspace)["id"] if workspace else None
    page = client.pages("/api/sessions", limit, q=search, archived=str(archived).lower(), workspaceId=workspace_id)
    if as_json:
        print_json(page)
        return
    if not page["items"] and search is not None:
        note("Nothing holds these words.")
        return
    if not page["items"]:
        note("Nothing is archived." if archived else f"There are no sessions yet. Begin one: {command('chat')}")
        return
    print_sessions(page["items"])
    if page["nextCursor"]:
        note(f"There are more: --limit {limit * 4}")


def print_sessions(items: list[dict[str, Any]]) -> None:
    """Print one line a session."""
    rows = [
        [row["id"], local_time(row["updatedAt"]), _mark(row), row["title"] or "(no title)", _found(row)]
        for row in items
    ]
    print_table(["SESSION", "LAST ACTIVE", "", "TITLE", ""], rows, flexible=-1 if any(map(_found, items)) else -2)


def _found(row: dict[str, Any]) -> str:
    match = row.get("match")
    return f"“{match['excerpt']}”" if match else ""


def _mark(row: dict[str, Any]) -> str:
    if row["runningTurnId"]:
        return "answering"
    ended = row.get("lastTurnState")
    return str(ended) if ended in ("failed", "interrupted") else ""


@sessions.command()
@click.option("--id", "session_id", type=ID, help="An id of your own; by default a new one.")
@click.option("--title", help="A title; by default the beginning of the first message.")
@click.option("--workspace", "workspace", help="Name or id; by default the default workspace.")
@as_json_option
@with_client
def new(client: Client, session_id: str | None, title: str | None, workspace: str | None, as_json: bool) -> None:
    """Make an empty session and print its id."""
    body: dict[str, Any] = {"id": session_id, "title": title}
    if workspace:
        body["workspaceId"] = find_workspace(client, workspace)["id"]
    made = client.send("POST", "/api/sessions", given(body))
    tell(made, made["id"], as_json=as_json)


@sessions.command()
@session_argument
@click.option("--last", default=20, show_default=True, type=click.IntRange(1, 200), help="How many messages.")
@as_json_option
@with_client
def show(client: Client, session: str, last: int, as_json: bool) -> None:
    """Show a session and its newest messages; `popagent history` exports all of them."""
    view = client.get(f"/api/sessions/{session}", limit=last)
    if as_json:
        print_json(view)
        return
    title = one_safe_line(view["title"]) or "(no title)"
    click.echo(f"{click.style(title, bold=True)}\n")
    state = ["archived"] if view["archivedAt"] else []
    state += [f"an answer is being written: {command(f'watch {session}')}"] if view["runningTurnId"] else []
    click.echo(f"  id         {view['id']}")
    click.echo(f"  workspace  {view['workspaceId']}")
    click.echo(f"  created    {local_time(view['createdAt'])}, last active {local_time(view['updatedAt'])}")
    if state:
        click.echo(f"  state      {', '.join(state)}")
    click.echo()
    if view["previousCursor"]:
        note(f"Earlier messages: {command(f'history {session}')}\n")
    click.echo(as_markdown(view["messages"]) or "There are no messages yet.")


@sessions.command()
@session_argument
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
@with_client
def find(client: Client, session: str, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find the messages of a session that hold every word."""
    page = client.pages(f"/api/sessions/{session}/search", limit, q=" ".join(words))
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("Nothing holds these words.")
        return
    rows = [[hit["messageId"], local_time(hit["at"]), NAMES[hit["role"]], hit["excerpt"]] for hit in page["items"]]
    print_table(["MESSAGE", "AT", "FROM", "TEXT"], rows)
    if page["nextCursor"]:
        note(f"There are more: --limit {limit * 4}")


@sessions.command()
@session_argument
@click.argument("title")
@as_json_option
@with_client
def rename(client: Client, session: str, title: str, as_json: bool) -> None:
    """Give a session a title."""
    view = _patch(client, session, {"title": title})
    tell(view, f"{session} is now called {one_safe_line(view['title'])}", as_json=as_json)


@sessions.command()
@session_argument
@as_json_option
@with_client
def archive(client: Client, session: str, as_json: bool) -> None:
    """Put a session away; `restore` brings it back."""
    tell(_patch(client, session, {"archived": True}), f"{session} is archived", as_json=as_json)


@sessions.command()
@session_argument
@as_json_option
@with_client
def restore(client: Client, session: str, as_json: bool) -> None:
    """Bring an archived session back."""
    tell(_patch(client, session, {"archived": False}), f"{session} is back", as_json=as_json)


@sessions.command()
@session_argument
@click.option("--keep", required=True, type=click.IntRange(min=0), help="How many messages stay, from the beginning.")
@as_json_option
@with_client
def shorten(client: Client, session: str, keep: int, as_json: bool) -> None:
    """Go back to an earlier message; what followed is no longer part of the session."""
    view, messages = _all_messages(client, session)
    if keep >= len(messages):
        raise CliError(f"The session has {len(messages)} messages; --keep must be smaller.")
    body = {"revision": view["revision"], "messages": [{"id": message["id"]} for message in messages[:keep]]}
    shortened = client.send("PUT", f"/api/sessions/{session}", body)
    tell(shortened, f"{session} now ends after message {keep} of {len(messages)}", as_json=as_json)


@sessions.command()
@session_argument
@click.argument("message", type=ID)
@as_json_option
@with_client
def branch(client: Client, session: str, message: str, as_json: bool) -> None:
    """Show the branch through a message, down to its newest end; `show --json` names the siblings of each message."""
    revision = client.get(f"/api/sessions/{session}", limit=1)["revision"]
    view = client.send("PUT", f"/api/sessions/{session}/head", {"revision": revision, "messageId": message})
    tell(view, f"{session} now shows the branch through {message}", as_json=as_json)


@sessions.command()
@session_argument
@yes_option
@as_json_option
@with_client
def delete(client: Client, session: str, yes: bool, as_json: bool) -> None:
    """Delete a session for good; what runs in it is stopped first. Asks before, on a terminal."""
    ask_before(lambda: f"“{one_safe_line(client.get(f'/api/sessions/{session}', limit=1)['title'], 60)}”", yes=yes)
    gone = client.send("DELETE", f"/api/sessions/{session}")
    if "state" in gone:  # a long one, of which a job deletes what was said
        gone = followed(client, gone)
    tell(gone, f"{session} is deleted", as_json=as_json)


def _all_messages(client: Client, session: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the session and every message of its branch, oldest first."""
    view: dict[str, Any] = client.get(f"/api/sessions/{session}", limit=200)
    pages = [view["messages"]]
    before = view["previousCursor"]
    while before is not None:
        page = client.get(f"/api/sessions/{session}", limit=200, before=before)
        pages.append(page["messages"])
        before = page["previousCursor"]
    return view, [message for page in reversed(pages) for message in page]


def _patch(client: Client, session: str, change: dict[str, Any]) -> dict[str, Any]:
    revision = client.get(f"/api/sessions/{session}", limit=1)["revision"]
    changed: dict[str, Any] = client.send("PATCH", f"/api/sessions/{session}", {"revision": revision, **change})
    return changed
