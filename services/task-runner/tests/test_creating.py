"""Tasks that come at the same time: stored together, each answered for itself, none twice and none lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit import clock
from popagent_kit.errors import UnavailableError
from popagent_kit.ids import new_id
from popagent_proto.task_runner.workspaces import CloseToTasks
from popagent_task_runner.tasks import creating, making, store
from popagent_task_runner.tasks.creating import Creations, DatabaseClock


def a_task(task_id: str = "", prompt: str = "p", **more: Any) -> making.NewTask:
    fields = {"workspace_id": "home", "now": clock.now(), "max_attempts": 3, **more}
    return making.new_task(task_id=task_id or new_id(), prompt=prompt, **fields)


class Counted:
    """The statement, and how many tasks it was given each time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        whole: Query[str] = store.INSERT
        monkeypatch.setattr(store, "INSERT", self)
        self._whole = whole

    async def all(self, conn: Any, *arguments: Any) -> list[str]:
        self.sizes.append(len(arguments[0]))
        return await self._whole.all(conn, *arguments)


async def test_what_comes_while_others_are_stored_goes_together_and_each_has_its_event(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = Counted(monkeypatch)
    creations = Creations(pool)
    tasks = [a_task() for _ in range(120)]

    stored = await asyncio.gather(*(creations.store(task) for task in tasks))

    assert stored == [True] * 120
    assert counted.sizes == [50, 50, 20]
    told = await pool.fetch("select aggregate_id, payload::json ->> 'aggregateId' as told from outbox")
    assert sorted(row["aggregate_id"] for row in told) == sorted(row["told"] for row in told)
    assert {row["told"] for row in told} == {row[0] for row in await pool.fetch("select id from tasks")}


async def test_the_same_task_twice_at_once_is_stored_and_told_once(pool: Pool) -> None:
    creations = Creations(pool)

    stored = await asyncio.gather(
        *(creations.store(a_task("same")) for _ in range(5)), creations.store(a_task("other"))
    )

    assert sorted(stored[:5]) == [False] * 4 + [True]
    assert stored[5]
    assert await pool.fetchval("select count(*) from outbox where aggregate_id = 'same'") == 1


async def test_one_that_the_database_refuses_falls_alone(pool: Pool) -> None:
    creations = Creations(pool)
    tasks = [a_task(), a_task(max_attempts=0), a_task()]

    stored = await asyncio.gather(*(creations.store(task) for task in tasks), return_exceptions=True)

    assert [stored[0], stored[2]] == [True, True]
    assert isinstance(stored[1], Exception)
    assert await pool.fetchval("select count(*) from tasks") == 2


async def test_large_ones_do_not_go_together(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creating, "MOST_CHARACTERS", 1_000)
    counted = Counted(monkeypatch)
    creations = Creations(pool)

    await asyncio.gather(*(creations.store(a_task(prompt="x" * 400)) for _ in range(6)))

    assert counted.sizes == [2, 2, 2]


async def test_who_gives_up_waiting_takes_nobody_along(pool: Pool) -> None:
    creations = Creations(pool)
    first, second = (asyncio.create_task(creations.store(a_task())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert await second
    await asyncio.gather(first, return_exceptions=True)
    assert await creations.store(a_task())


async def test_all_are_told_that_the_database_is_away_and_the_next_is_stored(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    creations = Creations(pool)

    async def away(*_: Any) -> list[str]:
        raise UnavailableError

    with monkeypatch.context() as broken:
        broken.setattr(store, "INSERT", type("Away", (), {"all": staticmethod(away)}))
        refused = await asyncio.gather(*(creations.store(a_task()) for _ in range(3)), return_exceptions=True)

    assert [type(each) for each in refused] == [UnavailableError] * 3
    assert await creations.store(a_task())


async def test_a_workspace_that_is_closed_while_tasks_come_fast_takes_none(
    start: Any, door: Any, refusal: Any, pool: Pool
) -> None:
    await start(slots=0)
    await door.create(workspace_id="north")
    await door.create(workspace_id="north")

    await door.ask(CloseToTasks(workspace_id="north", closed_by="somebody"))
    refused = await refusal(door.create(workspace_id="north"))
    elsewhere = await door.create(workspace_id="south")

    assert (refused.code, elsewhere.workspace_id) == ("workspace_closing", "south")
    assert await pool.fetchval("select count(*) from tasks where workspace_id = 'north'") == 2


async def test_tasks_that_one_caller_makes_are_in_the_order_of_their_making(start: Any, door: Any, pool: Pool) -> None:
    await start(slots=0)

    made = [await door.create() for _ in range(30)]
    stored = await pool.fetch("select id, created_at, run_at from tasks order by created_at, id")

    assert [row["id"] for row in stored] == [task.id for task in made]
    assert [clock.wire_time(task.created_at) for task in made] == [clock.wire_time(row["created_at"]) for row in stored]
    assert all(row["run_at"] == row["created_at"] for row in stored)
    assert await pool.fetchval("select max(run_at) <= clock_timestamp() from tasks")


def test_the_time_of_the_database_never_runs_ahead_and_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    known, told = DatabaseClock(), clock.now()
    at = [100.0]
    monkeypatch.setattr(creating.time, "monotonic", lambda: at[0])

    assert known.now() is None
    known.told(told)
    at[0] += 0.5
    half = known.now()
    known.told(told + timedelta(seconds=0.4))  # heard of later than it was said
    again = known.now()
    known.told(told - timedelta(minutes=10))  # set back
    back = known.now()
    at[0] += creating.KNOWN_S + 0.1

    assert half == again == told + timedelta(seconds=0.5)
    assert back == told - timedelta(minutes=10)
    assert known.now() is None
