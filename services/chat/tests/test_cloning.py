"""A repository is cloned and registered by a job: once, whole or not at all, whatever is killed meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_chat.workspaces import cloning
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.jobs import GetChatJob
from popagent_proto.chat.workspaces import (
    CloneWorkspace,
    CloneWorkspaceBody,
    ListWorkspaceCandidates,
    ListWorkspaces,
    RegisterWorkspace,
    RegisterWorkspaceBody,
)
from popagent_proto.common import JobView
from popagent_testing.repositories import Repository, can_be_served, served
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door, refusal

pytestmark = pytest.mark.skipif(not can_be_served(), reason="there is no git daemon")


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    Repository.made(tmp_path / "served" / "house.git").commit("First", {"README.md": "one\n"})
    with served(tmp_path / "served") as address:
        yield address


@pytest.fixture(autouse=True)
async def only_the_default_workspace(pool: Pool) -> None:
    await pool.execute("delete from workspaces where not is_default")
    await pool.execute("delete from jobs")


def command(url: str, command_id: str | None = None, **body: str) -> CloneWorkspace:
    return CloneWorkspace(command_id=command_id or new_id(), body=CloneWorkspaceBody(url=url, **body))


async def ended(door: Door, job_id: str) -> JobView:
    async with asyncio.timeout(20):
        while (job := await door.ask(GetChatJob(job_id=job_id))).state not in ("completed", "failed"):
            await asyncio.sleep(0.02)
    found: JobView = job
    return found


async def test_a_repository_is_cloned_registered_and_told(
    chat: Chat, door: Door, root: Path, pool: Pool, address: str
) -> None:
    asked = command(f"{address}/house.git", name="The house", directory="home")

    job: JobView = await door.ask(asked)
    done = await ended(door, job.id)

    assert (job.kind, job.title, job.about) == ("workspaces-clone", "Clone into home", asked.command_id)
    assert (done.state, done.result) == ("completed", {"workspaceId": asked.command_id, "path": "home"})
    row = next(row for row in (await door.ask(ListWorkspaces())).items if row.path == "home")
    assert (row.id, row.name, row.branch) == (asked.command_id, "The house", "main")
    assert (root / "home" / "README.md").read_text() == "one\n"
    assert sorted(each.name for each in root.iterdir()) == ["default", "home"]
    assert not (root / "home" / ".git" / cloning.MARK).exists()
    subjects = await pool.fetch("select subject from outbox where aggregate_id = $1", asked.command_id)
    assert [each["subject"] for each in subjects] == ["popagent.chat.evt.workspaces-registered.v1"]


async def test_the_same_command_is_the_same_job_and_another_one_under_its_key_is_refused(
    chat: Chat, door: Door, address: str
) -> None:
    asked = command(f"{address}/house.git")

    jobs = await asyncio.gather(*(door.ask(asked) for _ in range(3)))
    await ended(door, jobs[0].id)
    later = await door.ask(asked)
    other = await refusal(door.ask(command(f"{address}/house.git", asked.command_id, directory="elsewhere")))

    assert len({job.id for job in [*jobs, later]}) == 1
    assert (later.state, other.code) == ("completed", "key_used")


async def test_a_place_is_promised_once(chat: Chat, door: Door, root: Path, address: str) -> None:
    (root / "there").mkdir()
    (root / "dangling").symlink_to("/nonexistent")
    (root / "goes").mkdir()
    await door.ask(RegisterWorkspace(command_id=new_id(), body=RegisterWorkspaceBody(name="Goes", path="goes")))
    (root / "goes").rmdir()
    first, second = (command(f"{address}/house.git") for _ in range(2))

    answers = await asyncio.gather(door.ask(first), door.ask(second), return_exceptions=True)
    refused = [
        await refusal(door.ask(command(f"{address}/house.git", directory=name)))
        for name in ("there", "dangling", "goes", "default")
    ]

    assert [type(each).__name__ for each in answers].count("JobView") == 1
    assert [each.code for each in answers if isinstance(each, Exception)] == ["clone_under_way"]  # type: ignore[attr-defined]
    assert [error.code for error in refused] == ["directory_taken"] * 2 + ["workspace_exists"] * 2
    assert {(error.http_status, error.field) for error in refused} == {(409, "directory")}
    job = next(each for each in answers if isinstance(each, JobView))
    await ended(door, job.id)


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("file:///etc", "url"),
        ("ext::sh -c date", "url"),
        ("--upload-pack=x", "url"),
        ("https://ada:hunter22@example.org/p", "url"),
        ("/etc", "url"),
        ("https://example.org/..", "directory"),
    ],
)
async def test_a_hostile_address_makes_no_job(chat: Chat, door: Door, pool: Pool, url: str, field: str) -> None:
    error = await refusal(door.ask(command(url)))

    assert (error.http_status, error.field) == (422, field)
    assert "hunter22" not in error.message
    assert await pool.fetchval("select count(*) from jobs") == 0


async def test_a_clone_that_fails_says_why_leaves_nothing_and_may_be_asked_for_again(
    chat: Chat, door: Door, root: Path, tmp_path: Path, address: str
) -> None:
    failed = await ended(door, (await door.ask(command(f"{address}/late.git"))).id)
    left = [each.name for each in root.iterdir()]
    Repository.made(tmp_path / "served" / "late.git").commit("First", {"a": "b\n"})
    done = await ended(door, (await door.ask(command(f"{address}/late.git"))).id)

    assert failed.state == "failed"
    assert failed.error is not None
    assert "no repository at this address" in failed.error
    assert left == ["default"]
    assert done.state == "completed"


async def test_what_a_killed_clone_left_is_swept_and_what_is_under_way_is_not(
    chat: Chat, door: Door, root: Path, pool: Pool
) -> None:
    for job, state in (("chat_dead", "failed"), ("chat_alive", "running")):
        await pool.execute(
            "insert into jobs (id, kind, state, attempt, owner, lease_until) values ($1, $2, $3::text, 2,"
            " case $3 when 'running' then gen_random_uuid() end,"
            " case $3 when 'running' then clock_timestamp() + interval '1 hour' end)",
            job,
            cloning.KIND,
            state,
        )
    for name in ("chat_dead-2", "chat_alive-1", "chat_alive-2", "unknown"):
        (root / f"{cloning.PREFIX}{name}" / "house").mkdir(parents=True)

    candidates = await door.ask(ListWorkspaceCandidates())
    await cloning.sweep(chat.deps)

    assert candidates.items == []
    assert sorted(each.name for each in root.iterdir()) == [".cloning-chat_alive-2", "default"]


async def test_a_clone_that_had_its_name_already_is_registered_by_the_next_attempt(
    start: StartChat, door: Door, root: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await start()
    reached, register, clones = asyncio.Event(), cloning._register, 0

    async def held(*args: object) -> None:
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(cloning, "_register", held)
    asked = command(f"{address}/house.git")
    job = await door.ask(asked)
    await reached.wait()
    await first.deps.jobs.stop(drain_s=0)
    marked = (root / "house" / ".git" / cloning.MARK).read_text()
    monkeypatch.setattr(cloning, "_register", register)
    monkeypatch.setattr(cloning, "_make", None)  # another clone would be a failure
    await start()

    done = await ended(door, job.id)

    assert (marked, clones) == (job.id, 0)
    assert done.result == {"workspaceId": asked.command_id, "path": "house"}
    assert not (root / "house" / ".git" / cloning.MARK).exists()


async def test_somebody_elses_folder_that_came_meanwhile_is_not_touched(
    chat: Chat, door: Door, root: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give = cloning._give_its_name

    def too_late(made: Path, target: Path, job_id: str) -> None:
        target.mkdir()
        (target / "mine").write_text("x")
        give(made, target, job_id)

    monkeypatch.setattr(cloning, "_give_its_name", too_late)

    failed = await ended(door, (await door.ask(command(f"{address}/house.git"))).id)

    assert (failed.state, failed.error) == ("failed", cloning.DirectoryTakenError.__doc__)
    assert [each.name for each in (root / "house").iterdir()] == ["mine"]
    assert sorted(each.name for each in root.iterdir()) == ["default", "house"]
