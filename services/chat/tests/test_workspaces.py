"""Workspaces: registered only where an agent may look, once, and found again by the same command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id
from popagent_proto.chat.workspaces import ListWorkspaces, RegisterWorkspace, RegisterWorkspaceBody, WorkspaceView
from services.chat.tests.running import Door

pytestmark = pytest.mark.usefixtures("chat")


def command(path: str, name: str = "A workspace", command_id: str | None = None) -> RegisterWorkspace:
    return RegisterWorkspace(command_id=command_id or new_id(), body=RegisterWorkspaceBody(name=name, path=path))


async def refusal(work: Any) -> AppError:
    with pytest.raises(AppError) as refused:
        await work
    return refused.value


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

    assert (taken.http_status, taken.code, taken.extra["workspace"]["id"]) == (409, "workspace_exists", first.id)
    assert replayed == first
    assert other.code == "workspace_exists"


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
