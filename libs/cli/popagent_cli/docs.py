"""`popagent docs-…`: the pages that a workspace's documentation consists of."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any, Final

import click

from popagent_cli.client import ID, Client, given, with_client
from popagent_cli.deleting import ask_before, yes_option
from popagent_cli.errors import CliError, RefusedError
from popagent_cli.piped import FROM_STANDARD_INPUT
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line, safe
from popagent_cli.workspaces import find_workspace
from popagent_kit.settings import command

# What the names of pages end in.
ENDINGS: Final = (".md", ".markdown")

in_workspace = click.option("--workspace", metavar="NAME-OR-ID", help="By default the default one.")


def docs_of(client: Client, workspace: str | None) -> str:
    """Return the path of the documentation of a workspace, the default one where none is named.

    Raises:
        CliError: There is no such workspace.
    """
    if workspace is not None:
        return f"/api/workspaces/{find_workspace(client, workspace)['id']}/docs"
    items = client.get("/api/workspaces", limit=1)["items"]
    if not items:
        raise CliError(f"No workspace is registered. Register one: {command('workspace add FOLDER')}")
    return f"/api/workspaces/{items[0]['id']}/docs"


def text_of_file(name: str) -> str:
    """Return the text of a file, or of standard input for `-`, as it is.

    Raises:
        CliError: It cannot be read, or is no text in UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read() if name == FROM_STANDARD_INPUT else Path(name).read_bytes()
        return raw.decode()
    except OSError as error:
        raise CliError(f"{name} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CliError(f"{name} is no text in UTF-8.") from error


@click.command()
@click.argument("folder", required=False)
@in_workspace
@click.option("--deleted", is_flag=True, help="Pages that can be brought back instead.")
@as_json_option
@with_client
def docs_list(client: Client, folder: str | None, *, workspace: str | None, deleted: bool, as_json: bool) -> None:
    """List the pages and folders of a workspace's documentation, or those below FOLDER."""
    path = docs_of(client, workspace)
    if deleted:
        _list_deleted(client, path, as_json=as_json)
        return
    page = _whole_tree(client, path, folder)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note(f"Nothing is written yet. Write a page: {command('docs-create guide/first.md FILE')}")
        return
    rows = [
        [
            row["path"] + ("/" if row["kind"] == "folder" else ""),
            f"{row['characters']:,}" if row["kind"] == "page" else "",
            local_time(row["updatedAt"]),
        ]
        for row in page["items"]
    ]
    print_table(["PATH", ">CHARACTERS", "CHANGED"], rows, flexible=0)


def _whole_tree(client: Client, path: str, folder: str | None) -> dict[str, Any]:
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page: dict[str, Any] = client.get(path, folder=folder, cursor=cursor)
        items += page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            return {**page, "items": items}


def _list_deleted(client: Client, path: str, *, as_json: bool) -> None:
    page = client.pages(f"{path}/deleted", 1_000)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("No page was deleted in the last thirty days.")
        return
    rows = [[row["path"], local_time(row["deletedAt"]), str(row["version"]), row["id"]] for row in page["items"]]
    print_table(["PATH", "DELETED", ">VERSION", "ID"], rows, flexible=0)
    note(f"Bring one back: {command('docs-restore --id ID VERSION')}")


@click.command()
@click.argument("path", required=False)
@click.option("--id", "page_id", type=ID, help="Of a page that was deleted, instead of its path.")
@click.option("--version", type=int, help="A text that it had before.")
@in_workspace
@as_json_option
@with_client
def docs_show(
    client: Client, path: str | None, *, page_id: str | None, version: int | None, workspace: str | None, as_json: bool
) -> None:
    """Print a page, as it is or as it was."""
    docs = docs_of(client, workspace)
    if version is None:
        if path is None:
            raise CliError("Which page? Give its path.")
        page = _page(client, docs, path)
    else:
        page = client.get(f"{docs}/pages/{_page_id(client, docs, path, page_id)}/history/{version}")
    if as_json:
        print_json(page)
        return
    click.echo(safe(page["body"]), nl=not page["body"].endswith("\n"))


@click.command()
@click.argument("path")
@click.argument("file", required=False)
@in_workspace
@as_json_option
@with_client
def docs_create(client: Client, path: str, file: str | None, *, workspace: str | None, as_json: bool) -> None:
    """Make a page from FILE, or from standard input where that is `-`, or an empty one."""
    body = {"path": path, "body": "" if file is None else text_of_file(file)}
    made = client.send("POST", f"{docs_of(client, workspace)}/page", body)
    tell(made, f"{one_safe_line(made['path'])} is written", as_json=as_json)


@click.command()
@click.argument("path")
@click.argument("file")
@click.option("--revision", help="The one that was read; by default that of this moment.")
@in_workspace
@as_json_option
@with_client
def docs_write(
    client: Client, path: str, file: str, *, revision: str | None, workspace: str | None, as_json: bool
) -> None:
    """Replace the text of a page by FILE, or by standard input where that is `-`."""
    text, docs = text_of_file(file), docs_of(client, workspace)
    seen = revision or _page(client, docs, path)["revision"]
    written = client.send("PUT", f"{docs}/page", {"path": path, "body": text, "revision": seen})
    tell(written, f"{one_safe_line(written['path'])} is written", as_json=as_json)


@click.command()
@click.argument("path")
@click.argument("to")
@in_workspace
@as_json_option
@with_client
def docs_move(client: Client, path: str, to: str, *, workspace: str | None, as_json: bool) -> None:
    """Move or rename a page, or a folder with all that is in it."""
    moved = client.send("POST", f"{docs_of(client, workspace)}/move", {"path": path, "to": to})
    pages = f" with {_counted(moved['pages'], 'page')}" if moved["kind"] == "folder" else ""
    tell(moved, f"It is at {one_safe_line(moved['path'])} now{pages}", as_json=as_json)


@click.command()
@click.argument("path")
@in_workspace
@as_json_option
@with_client
def docs_mkdir(client: Client, path: str, *, workspace: str | None, as_json: bool) -> None:
    """Make a folder, and those above it."""
    made = client.send("POST", f"{docs_of(client, workspace)}/folders", {"path": path})
    tell(made, f"{one_safe_line(made['path'])} is there", as_json=as_json)


@click.command()
@click.argument("path")
@click.option("--folder", is_flag=True, help="PATH is a folder; it goes with all that is in it.")
@in_workspace
@yes_option
@as_json_option
@with_client
def docs_delete(client: Client, path: str, *, folder: bool, workspace: str | None, yes: bool, as_json: bool) -> None:
    """Delete a page, or a folder with all that is in it; pages can be brought back for thirty days."""
    docs = docs_of(client, workspace)
    if folder:
        gone = _delete_folder(client, docs, path, yes=yes)
        text = f"{one_safe_line(path)} is deleted with {_counted(gone['pages'], 'page')}"
    elif not path.lower().endswith(ENDINGS):
        whole = command(f"docs-delete {shlex.quote(one_safe_line(path))} --folder")
        raise CliError(f"A page's name ends in .md. A folder goes with --folder: {whole}")
    else:
        revision = _page(client, docs, path)["revision"]
        ask_before(lambda: one_safe_line(path), yes=yes)
        gone = client.send("DELETE", f"{docs}/page", params={"path": path, "revision": revision})
        text = f"{one_safe_line(path)} is deleted; {command('docs-list --deleted')} shows how to bring it back"
    tell(gone, text, as_json=as_json)


def _delete_folder(client: Client, docs: str, path: str, *, yes: bool) -> dict[str, Any]:
    try:
        gone: dict[str, Any] = client.send("DELETE", f"{docs}/folders", params={"path": path})
    except RefusedError as refused:
        if refused.code != "folder_not_empty":
            raise
        seen = refused.body
        ask_before(lambda: f"{one_safe_line(path)} with {_counted(seen['pages'], 'page')}", yes=yes)
        gone = client.send("DELETE", f"{docs}/folders", params={"path": path, "revision": seen["revision"]})
    return gone


@click.command()
@click.argument("path", required=False)
@click.option("--id", "page_id", type=ID, help="Of a page that was deleted, instead of its path.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200))
@in_workspace
@as_json_option
@with_client
def docs_history(
    client: Client, path: str | None, *, page_id: str | None, limit: int, workspace: str | None, as_json: bool
) -> None:
    """List the texts that a page has and had, the newest first."""
    docs = docs_of(client, workspace)
    page = client.pages(f"{docs}/pages/{_page_id(client, docs, path, page_id)}/history", limit)
    if as_json:
        print_json(page)
        return
    rows = [
        [
            str(row["version"]),
            local_time(row["writtenAt"]),
            f"{row['characters']:,}",
            row["path"],
            "now" if row["isCurrent"] else "",
        ]
        for row in page["items"]
    ]
    print_table([">VERSION", "WRITTEN", ">CHARACTERS", "PATH", ""], rows, flexible=3)


@click.command()
@click.argument("version", type=int)
@click.argument("path", required=False)
@click.option("--id", "page_id", type=ID, help="Of a page that was deleted, instead of its path.")
@in_workspace
@as_json_option
@with_client
def docs_restore(
    client: Client, version: int, path: str | None, *, page_id: str | None, workspace: str | None, as_json: bool
) -> None:
    """Make an old text the newest one; a deleted page comes back where it was."""
    docs = docs_of(client, workspace)
    page = _page_or_hint(client, docs, path) if page_id is None and path is not None else {}
    which = page_id or page.get("id") or _page_id(client, docs, path, page_id)
    body = given({"version": version, "revision": page.get("revision")})
    restored = client.send("POST", f"{docs}/pages/{which}/restore", body)
    tell(restored, f"{one_safe_line(restored['path'])} is as it was", as_json=as_json)


def _page(client: Client, docs: str, path: str) -> dict[str, Any]:
    page: dict[str, Any] = client.send("GET", f"{docs}/page", params={"path": path})
    return page


def _page_or_hint(client: Client, docs: str, path: str) -> dict[str, Any]:
    """Return a page whose past is asked for; where there is none, say how a deleted one is named."""
    try:
        return _page(client, docs, path)
    except RefusedError as refused:
        if refused.status != 404:
            raise
        listing = command("docs-list --deleted")
        raise CliError(
            f"{refused.message} A deleted one is named by its id, with --id ID instead of its path: {listing}"
        ) from refused


def _page_id(client: Client, docs: str, path: str | None, page_id: str | None) -> str:
    if page_id is not None:
        return page_id
    if path is None:
        raise CliError("Which page? Give its path, or --id of a deleted one.")
    return str(_page_or_hint(client, docs, path)["id"])


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
