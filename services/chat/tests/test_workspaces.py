"""Workspaces: registered only where an agent may look, once, and found again by the same command."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from popagent_chat.workspaces import references
from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.sessions import (
    CreateSession,
    CreateSessionBody,
    DeleteSession,
    PatchSession,
    PatchSessionBody,
)
from popagent_proto.chat.workspaces import (
    DeleteWorkspace,
    ListWorkspaceCandidates,
    ListWorkspaces,
    PatchWorkspace,
    PatchWorkspaceBody,
    RegisterWorkspace,
    RegisterWorkspaceBody,
    WorkspaceRow,
    WorkspaceView,
)
from services.chat.tests.owners import Owners
from services.chat.tests.running import Door, Watched, refusal

pytestmark = pytest.mark.usefixtures("chat", "owners")


def command(path: str, name: str = "A workspace", command_id: str | None = None) -> RegisterWorkspace:
    return RegisterWorkspace(command_id=command_id or new_id(), body=RegisterWorkspaceBody(name=name, path=path))


async def test_a_directory_below_the_root_is_registered_and_told(door: Door, root: Path, pool: Pool) -> None:
    (root / "group" / "project").mkdir(parents=True)
    message = command("group//project/", "Project")

    view = await door.ask(message)

    assert (view.id, view.name, view.path, view.is_default) == (message.command_id, "Project", "group/project", False)
    assert await pool.fetchval("select count(*) from outbox where aggregate_id = $1", view.id) == 1


async def test_an_absolute_path_inside_the_root_becomes_relative(door: Door, root: Path) -> None:
    (root / "absolute").mkdir()

    assert (await door.ask(command(str(root / "absolute")))).path == "absolute"


async def test_what_is_no_directory_strictly_below_the_root_is_refused(door: Door, root: Path, pool: Pool) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "file").write_text("x")
    (root / ".hidden").mkdir()
    (root / "seen" / ".git").mkdir(parents=True)
    os.symlink(outside, root / "leads-out")
    os.symlink("/", root / "leads-to-the-top")
    os.mkfifo(root / "pipe")
    hostile = [
        *("..", "../outside", "default/../../outside", "default/..", ".", "./", "/", "/etc", str(outside), str(root)),
        *(".hidden", "seen/.git", "leads-out", "leads-to-the-top/etc", "file", "file/deeper", "pipe", "missing"),
        *("default\\..\\..", "C:\\", "x" * 1_000, "a/" * 500, "default\n", " ", "~", "%2e%2e", "/proc/self/cwd"),
    ]

    for path in hostile:
        error = await refusal(door.ask(command(path)))
        assert (error.http_status, error.field) == (422, "path"), path
        assert str(root) not in error.message.replace(path, "")
    assert await pool.fetchval("select count(*) from workspaces where path = any($1)", hostile) == 0


async def test_the_same_path_again_is_answered_with_the_stored_registration(door: Door, root: Path) -> None:
    (root / "twice").mkdir()
    first: WorkspaceView = await door.ask(command("twice", "First"))

    taken = await refusal(door.ask(command("twice/", "Second")))
    replayed = await door.ask(command("twice", "First", first.id))
    other = await refusal(door.ask(command("default", "First", first.id)))
    renamed = await refusal(door.ask(command("twice", "Second", first.id)))

    assert (taken.http_status, taken.code, taken.extra["workspace"]["id"]) == (409, "workspace_exists", first.id)
    assert taken.message == "This directory is registered already, as “First”."
    assert replayed == first
    assert other.code == "workspace_exists"
    assert (renamed.http_status, renamed.code) == (409, "key_used")


async def test_workspaces_are_listed_by_name_the_default_one_first_page_by_page(
    door: Door, root: Path, pool: Pool
) -> None:
    await pool.execute("delete from workspaces where not is_default")
    for number in range(5):
        (root / f"w{number}").mkdir()
        await door.ask(command(f"w{number}", "Same name" if number < 3 else f"A{number}"))

    pages, cursor = [], None
    while True:
        page = await door.ask(ListWorkspaces(cursor=cursor, limit=2))
        pages.append(page.items)
        assert page.root == str(root)
        cursor = page.next_cursor
        if cursor is None:
            break

    names = [item.name for page in pages for item in page]
    assert [len(page) for page in pages] == [2, 2, 2]
    assert names == ["Default workspace", "A3", "A4", *["Same name"] * 3]
    assert len({item.id for page in pages for item in page}) == 6


@pytest.mark.parametrize("cursor", ["", "unknown", "a\x00b", "x" * 10_000])
async def test_a_cursor_that_no_list_answered_is_refused(door: Door, cursor: str) -> None:
    error = await refusal(door.ask(ListWorkspaces(cursor=cursor)))

    assert (error.http_status, error.field) == (422, "cursor")


def repository(folder: Path, head: str = "ref: refs/heads/main\n") -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text(head)
    return folder


async def rows(door: Door) -> dict[str, WorkspaceRow]:
    return {row.path: row for row in (await door.ask(ListWorkspaces())).items}


async def test_a_folder_is_registered_once_by_whatever_way_it_is_reached(door: Door, root: Path, pool: Pool) -> None:
    (root / "real").mkdir()
    os.symlink("real", root / "by-link")
    os.symlink(".", root / "here")

    first: WorkspaceView = await door.ask(command("by-link", "First"))
    again = await refusal(door.ask(command("real")))
    around = await refusal(door.ask(command("here/by-link")))

    assert first.path == "real"
    assert [error.extra["workspace"]["id"] for error in (again, around)] == [first.id, first.id]
    assert await pool.fetchval("select count(*) from workspaces where path = any($1)", ["real", "by-link"]) == 1


async def test_a_registration_by_a_link_from_before_is_found_too(door: Door, root: Path, pool: Pool) -> None:
    (root / "older").mkdir()
    os.symlink("older", root / "old-link")
    await pool.execute("insert into workspaces values ('old', 'Old', 'old-link', false, 0)")

    error = await refusal(door.ask(command("older")))

    assert error.extra["workspace"]["id"] == "old"


@pytest.mark.parametrize("target", [".hidden", "."])
async def test_a_link_to_a_hidden_folder_or_to_the_root_is_refused(target: str, door: Door, root: Path) -> None:
    (root / ".hidden").mkdir()
    os.symlink(target, root / "link")

    assert (await refusal(door.ask(command("link")))).field == "path"


async def test_the_list_says_what_lies_at_each_path_now(door: Door, root: Path) -> None:
    repository(root / "checked-out", "ref: refs/heads/feature/x\n")
    repository(root / "detached", "0af7651916cd43dd8448eb211c80319c0af76519\n")
    (root / "worktree").mkdir()
    (root / "worktree" / ".git").write_text("gitdir: /etc\n")
    (root / "goes").mkdir()
    for path in ("checked-out", "detached", "worktree", "goes"):
        await door.ask(command(path))
    (root / "goes").rmdir()

    found = await rows(door)

    seen = {path: (row.exists, row.is_repository, row.branch) for path, row in found.items()}
    assert seen["checked-out"] == (True, True, "feature/x")
    assert seen["detached"] == seen["worktree"] == (True, True, None)
    assert seen["goes"] == (False, False, None)
    assert seen["default"] == (True, False, None)


async def test_a_hostile_checkout_tells_nothing_from_elsewhere(door: Door, root: Path) -> None:
    secret = root.parent / "secret"
    secret.write_text("ref: refs/heads/stolen\n")
    (root / "linked" / ".git").mkdir(parents=True)
    os.symlink(secret, root / "linked" / ".git" / "HEAD")
    repository(root.parent / "outside", "ref: refs/heads/stolen\n")
    (root / "storage").mkdir()
    os.symlink(root.parent / "outside" / ".git", root / "storage" / ".git")
    repository(root / "ugly", "ref: refs/heads/a\x1b[2Jb\n")
    (root / "piped" / ".git").mkdir(parents=True)
    os.mkfifo(root / "piped" / ".git" / "HEAD")
    for path in ("linked", "storage", "ugly", "piped"):
        await door.ask(command(path))

    found = await rows(door)

    assert {found[path].branch for path in ("linked", "storage", "ugly", "piped")} == {None}


async def test_candidates_are_the_folders_nobody_registered_repositories_first(
    door: Door, root: Path, pool: Pool
) -> None:
    await pool.execute("delete from workspaces where not is_default")
    (root / "plain").mkdir()
    repository(root / "zoo")
    repository(root / "group" / "project", "ref: refs/heads/dev\n")
    (root / "group" / "notes").mkdir()
    (root / "taken").mkdir()
    (root / ".hidden").mkdir()
    (root / "file").write_text("x")
    (root / "bad\nname").mkdir()
    os.symlink("/etc", root / "leads-out")
    os.symlink("plain", root / "plain-again")
    await door.ask(command("taken"))

    found = await door.ask(ListWorkspaceCandidates())

    assert [(each.path, each.is_repository, each.branch) for each in found.items] == [
        ("group/project", True, "dev"),
        ("zoo", True, "main"),
        ("group", False, None),
        ("plain", False, None),
    ]
    assert found.complete


async def test_candidates_are_bounded(door: Door, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_chat.workspaces.candidates.MOST_LISTED", 3)
    for number in range(5):
        (root / f"c{number}").mkdir()

    found = await door.ask(ListWorkspaceCandidates())

    assert (len(found.items), found.complete) == (3, False)


async def test_without_a_root_there_are_no_candidates(door: Door, root: Path) -> None:
    shutil.rmtree(root)

    assert (await door.ask(ListWorkspaceCandidates())).items == []


def rename(workspace: WorkspaceView, name: str) -> PatchWorkspace:
    body = PatchWorkspaceBody(revision=workspace.revision, name=name)
    return PatchWorkspace(command_id=new_id(), workspace_id=workspace.id, body=body)


async def registered(door: Door, root: Path, path: str) -> WorkspaceView:
    (root / path).mkdir()
    view: WorkspaceView = await door.ask(command(path, "Mine"))
    return view


async def told_of(pool: Pool, workspace_id: str) -> list[str]:
    rows = await pool.fetch("select subject from outbox where aggregate_id = $1 order by position", workspace_id)
    return [row["subject"].rsplit(".", 2)[1] for row in rows]


async def test_a_workspace_is_renamed_once_by_whom_saw_it_last(door: Door, root: Path, pool: Pool) -> None:
    first = await registered(door, root, "named")

    renamed: WorkspaceView = await door.ask(rename(first, "Other"))
    stale = await refusal(door.ask(rename(first, "Third")))
    same: WorkspaceView = await door.ask(rename(renamed, "Other"))

    assert (renamed.name, renamed.path, renamed.revision) == ("Other", "named", first.revision + 1)
    assert (stale.http_status, stale.code, stale.extra["workspace"]["name"]) == (409, "revision_conflict", "Other")
    assert same == renamed
    assert await told_of(pool, first.id) == ["workspaces-registered", "workspaces-changed"]
    assert (await refusal(door.ask(rename(first.model_copy(update={"id": "unknown"}), "x")))).http_status == 404


async def test_a_workspace_that_nothing_refers_to_is_forgotten_and_its_folder_stays(
    door: Door, root: Path, pool: Pool
) -> None:
    view = await registered(door, root, "leaves")

    gone = await door.ask(DeleteWorkspace(workspace_id=view.id))
    again = await refusal(door.ask(DeleteWorkspace(workspace_id=view.id)))
    back: WorkspaceView = await door.ask(command("leaves", "Mine"))

    assert (gone.id, gone.deleted) == (view.id, True)
    assert (again.http_status, again.code) == (404, "not_found")
    assert (root / "leaves").is_dir()
    assert await told_of(pool, view.id) == ["workspaces-registered", "workspaces-deleted"]
    assert back.id != view.id


async def test_the_default_workspace_can_be_renamed_and_not_forgotten(door: Door) -> None:
    (default,) = [row for row in (await door.ask(ListWorkspaces())).items if row.is_default]

    refused = await refusal(door.ask(DeleteWorkspace(workspace_id=default.id)))
    renamed: WorkspaceView = await door.ask(rename(default, "Home"))
    back: WorkspaceView = await door.ask(rename(renamed, default.name))

    assert (refused.http_status, refused.code) == (409, "workspace_default")
    assert (renamed.name, back.name) == ("Home", default.name)


async def test_a_workspace_is_kept_while_a_session_works_in_it_archived_or_not(door: Door, root: Path) -> None:
    view = await registered(door, root, "used")
    session = await door.ask(CreateSession(command_id=new_id(), body=CreateSessionBody(workspace_id=view.id)))
    archived = PatchSessionBody(revision=session.revision, archived=True)
    await door.ask(PatchSession(command_id=new_id(), session_id=session.id, body=archived))

    refused = await refusal(door.ask(DeleteWorkspace(workspace_id=view.id)))
    await door.ask(DeleteSession(session_id=session.id))
    gone = await door.ask(DeleteWorkspace(workspace_id=view.id))

    assert (refused.http_status, refused.code, refused.extra["sessions"]) == (409, "workspace_in_use", 1)
    assert refused.message.startswith("1 session refers to this workspace")
    assert gone.deleted


async def test_a_workspace_is_kept_while_something_elsewhere_refers_to_it_and_taken_work_in_again(
    door: Door, root: Path, owners: Owners
) -> None:
    view = await registered(door, root, "worked-in")
    owners.tasks, owners.schedules, owners.documents = 2, 1, 3

    refused = await refusal(door.ask(DeleteWorkspace(workspace_id=view.id)))
    open_again = not owners.closed
    owners.tasks = owners.schedules = owners.documents = 0
    gone = await door.ask(DeleteWorkspace(workspace_id=view.id))

    assert (refused.http_status, refused.code) == (409, "workspace_in_use")
    assert refused.extra == {"sessions": 0, "tasks": 2, "schedules": 1, "documents": 3, "messages": 0}
    assert refused.message.startswith("2 tasks, 1 schedule and 3 documents refer to this workspace")
    assert open_again
    assert gone.deleted
    assert {owner for owner, _ in owners.closed} == {"tasks", "schedules", "documents"}


@pytest.mark.parametrize("why", ["late", "no scheduler", "no docs-indexer"])
async def test_without_the_word_of_those_who_may_refer_to_it_nothing_is_deleted(
    why: str, door: Door, root: Path, owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await registered(door, root, why.replace(" ", "-"))
    if why == "late":
        monkeypatch.setattr(references, "USABLE_S", 0.0)
    else:
        await (owners.scheduler if why == "no scheduler" else owners.docs_indexer).stop_serving()

    refused = await refusal(door.ask(DeleteWorkspace(workspace_id=view.id)))

    assert refused.http_status == 503
    assert "Nothing was deleted" in refused.message
    assert view.id in [row.id for row in (await door.ask(ListWorkspaces())).items]
    assert not owners.closed


@pytest.mark.parametrize("by", ["a session", "a turn"])
async def test_of_forgetting_and_beginning_at_once_one_is_refused(by: str, door: Door, root: Path, pool: Pool) -> None:
    for number in range(8):
        view = await registered(door, root, f"{by.replace(' ', '-')}-{number}")
        session = new_id()

        def begin(view: WorkspaceView = view, session: str = session) -> Awaitable[Any]:
            if by == "a turn":
                return door.start("hello", session, workspace_id=view.id)
            return door.ask(
                CreateSession(command_id=new_id(), body=CreateSessionBody(id=session, workspace_id=view.id))
            )

        outcomes = await asyncio.gather(
            door.ask(DeleteWorkspace(workspace_id=view.id)), begin(), return_exceptions=True
        )

        if isinstance(outcomes[1], Watched):
            await outcomes[1].read()
        refused = [each for each in outcomes if isinstance(each, AppError)]
        assert [each.http_status for each in refused] == [409 if isinstance(outcomes[0], AppError) else 422]
        stands = await pool.fetchval("select count(*) from workspaces where id = $1", view.id)
        works = await pool.fetchval("select count(*) from sessions where id = $1", session)
        assert stands == works
