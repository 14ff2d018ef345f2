"""`popagent workspace`: the folders that agents may work in."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from popagent_cli.client import Client, given, with_client
from popagent_cli.deleting import yes_option
from popagent_cli.errors import CliError
from popagent_cli.jobs import follow_command, followed, wait_option
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line
from popagent_kit.settings import command, home_folder
from popagent_local.groups import Group
from popagent_sandbox.clone_address import is_address, source_of


@click.group(cls=Group)
def workspace() -> None:
    """The folders that agents may work in."""


@workspace.command(name="list")
@as_json_option
@with_client
def list_workspaces(client: Client, as_json: bool) -> None:
    """List workspaces, the default one first."""
    page = client.pages("/api/workspaces", 10_000)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note(f"No folder is registered. Register one below the workspace root: {command('workspace add FOLDER')}")
        _tell_root(page.get("root"))
        return
    rows = [
        [
            row["name"],
            row["path"],
            _state(row),
            "*" if row["isDefault"] else "",
            local_time(row["createdAt"]),
            row["id"],
        ]
        for row in page["items"]
    ]
    print_table(["NAME", "PATH", "BRANCH", "DEFAULT", "SINCE", "ID"], rows, flexible=1)
    _tell_root(page.get("root"))


def _tell_root(root: str | None) -> None:
    """Say where the workspace root lies, and how a repository gets there."""
    if root is None:
        return
    note(f"The workspace root is {one_safe_line(root, 4_096)} where popagent runs. Clone a repository into it, and")
    note(f"register it: {command('workspace add URL')}; or put a folder there: {command('workspace add NAME')}")


@workspace.command()
@as_json_option
@with_client
def candidates(client: Client, as_json: bool) -> None:
    """List folders below the workspace root that are not registered yet."""
    page = client.get("/api/workspaces/candidates")
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("Every folder below the workspace root is registered. Clone a repository into it to offer another.")
        return
    print_table(["PATH", "BRANCH"], [[row["path"], _state(row)] for row in page["items"]], flexible=0)
    note(f"Register one: {command('workspace add PATH')}" + ("" if page["complete"] else " (there are more)"))


def _state(row: dict[str, Any]) -> str:
    if not row.get("exists", True):
        return "folder is gone"
    return (row["branch"] or "(no branch)") if row.get("isRepository") else "-"


@workspace.command()
@click.argument("path", metavar="PATH-OR-URL")
@click.option("--name", help="By default the last part of the path.")
@click.option(
    "--directory", "--folder", help="Where to clone to, below the workspace root; by default the last part of the URL."
)
@wait_option
@as_json_option
@with_client
def add(client: Client, *, path: str, name: str | None, directory: str | None, wait: bool, as_json: bool) -> None:
    """Register a folder below the workspace root, or clone a repository there and register it.

    A path is relative to that root; `popagent workspace list` shows where it is. A URL is cloned by popagent, with the
    ssh keys and credential helpers of the account that it runs as. No hook of it runs, and of its submodules nothing is
    fetched.
    """
    if is_address(path):
        made = _cloned(client, path, name, directory, wait=wait)
    elif directory is not None:
        raise CliError("--directory says where a URL is cloned to; a path is registered where it is.")
    else:
        made = _registered(client, path, name)
    if "state" in made:
        tell(made, f"It is being cloned; follow it: {follow_command(made)}", as_json=as_json)
        return
    use = command(f"chat --workspace {_told_apart(client, made)}")
    tell(made, f"{one_safe_line(made['name'])} is registered; use it: {use}", as_json=as_json)


@workspace.command(name="delete-sessions")
@click.argument("workspace", metavar="NAME-OR-ID")
@yes_option
@wait_option
@as_json_option
@with_client
def delete_sessions(client: Client, *, workspace: str, yes: bool, wait: bool, as_json: bool) -> None:
    """Delete every chat of a workspace for good, archived ones too; what runs in them is stopped first.

    Chats that are begun after this stay. The workspace stays, and its folder.
    """
    found = find_workspace(client, workspace)
    name = one_safe_line(found["name"])
    if not yes:
        if not sys.stdin.isatty():
            raise CliError("Nothing was deleted: add --yes, since there is nobody to ask.")
        if click.prompt(f"Type “{name}” to delete all of its chats for good", err=True) != found["name"]:
            raise CliError("That is another name. Nothing was deleted.")
    job = client.send("DELETE", f"/api/workspaces/{found['id']}/sessions")
    if not wait:
        tell(job, f"They are being deleted; follow it: {follow_command(job)}", as_json=as_json)
        return
    job = followed(client, job)
    result = job["result"]
    chats = "1 chat is deleted" if result["deleted"] == 1 else f"{result['deleted']:,} chats are deleted"
    tell(job, chats, as_json=as_json)
    for kept in result["kept"]:
        note(f"{kept['id']} was kept: {one_safe_line(kept['reason'], 200)}")


@workspace.command()
@click.argument("workspace", metavar="NAME-OR-ID")
@click.argument("name")
@as_json_option
@with_client
def rename(client: Client, workspace: str, name: str, as_json: bool) -> None:
    """Give a workspace another name; its folder stays where it is."""
    found = find_workspace(client, workspace)
    body = {"revision": found["revision"], "name": name}
    renamed = client.send("PATCH", f"/api/workspaces/{found['id']}", body)
    tell(renamed, f"{found['id']} is now called {one_safe_line(renamed['name'])}", as_json=as_json)


@workspace.command()
@click.argument("workspace", metavar="NAME-OR-ID")
@as_json_option
@with_client
def delete(client: Client, workspace: str, as_json: bool) -> None:
    """Forget a workspace that nothing refers to; its folder stays where it is."""
    found = find_workspace(client, workspace)
    gone = client.send("DELETE", f"/api/workspaces/{found['id']}")
    forgotten = f"{one_safe_line(found['name'])} is forgotten; its folder {one_safe_line(found['path'])} stays"
    tell(gone, forgotten, as_json=as_json)


@workspace.command()
@click.argument("workspace", metavar="NAME-OR-ID")
@with_client
def prepare(client: Client, workspace: str) -> None:
    """Run the command that makes a workspace's tests run, as you and with the network.

    It stands in the workspace's file below `sandbox` in the home; docs/sandbox.md says what else does. Read what the
    repository makes it do before: it runs outside of any sandbox.
    """
    from popagent_local import preparing  # noqa: PLC0415 (the other verbs need nothing of what it loads)

    found = find_workspace(client, workspace)
    ran = preparing.prepare(home_folder(), _root_here(client), found["path"])
    note(f"{one_safe_line(found['name'])} is prepared: {one_safe_line(ran, 200)}")


def _registered(client: Client, path: str, name: str | None) -> dict[str, Any]:
    body = {"name": name or path.rstrip("/").rpartition("/")[2] or path, "path": path}
    made: dict[str, Any] = client.send("POST", "/api/workspaces", body)
    return made


def _cloned(client: Client, url: str, name: str | None, directory: str | None, *, wait: bool) -> dict[str, Any]:
    """Return the workspace, or the job that will make it."""
    source_of(url, directory)  # refused here, so that no password is sent
    body = given({"url": url, "name": name, "directory": directory})
    job: dict[str, Any] = client.send("POST", "/api/workspaces", body)
    if not wait:
        return job
    followed(client, job)
    return find_workspace(client, job["about"])


def _root_here(client: Client) -> Path:
    """Return the workspace root of the popagent that answers, if it is a folder of this machine.

    Raises:
        CliError: It is another machine's, or inside a container: none of the registered folders is found.
    """
    page = client.pages("/api/workspaces", 10_000)
    root = Path(page.get("root") or "/nonexistent")
    there = [row["path"] for row in page["items"] if row.get("exists", True)]
    if root.is_dir() and all((root / path).is_dir() for path in there):
        return root
    raise CliError(
        f"The workspace root {one_safe_line(str(root), 4_096)} is not on this machine. Clone the repository where "
        f"popagent runs, then register its folder: {command('workspace add NAME')}"
    )


def workspace_name(client: Client, workspace_id: str) -> str:
    """Return the name of a workspace, or its id where it has gone."""
    items: list[dict[str, Any]] = client.pages("/api/workspaces", 10_000)["items"]
    return next((str(row["name"]) for row in items if row["id"] == workspace_id), workspace_id)


def _told_apart(client: Client, made: dict[str, Any]) -> str:
    """Return what a command calls a workspace: its name, where no other one has it."""
    items: list[dict[str, Any]] = client.pages("/api/workspaces", 10_000)["items"]
    same = [row for row in items if row["name"].casefold() == made["name"].casefold() and row["id"] != made["id"]]
    return str(made["id"]) if same else shlex.quote(one_safe_line(made["name"]))


def find_workspace(client: Client, name_or_id: str) -> dict[str, Any]:
    """Return the workspace with this id, else with this name.

    Raises:
        CliError: None has it, or several have the name.
    """
    items: list[dict[str, Any]] = client.pages("/api/workspaces", 10_000)["items"]
    found = [row for row in items if row["id"] == name_or_id]
    found = found or [row for row in items if row["name"].casefold() == name_or_id.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(row["id"] for row in found)
        raise CliError(f"Several workspaces are called {name_or_id!r}; give the id: {ids}.")
    names = ", ".join(one_safe_line(row["name"], 60) for row in items[:10]) or "none yet"
    raise CliError(f"There is no workspace {name_or_id!r}. There are: {names}.")
