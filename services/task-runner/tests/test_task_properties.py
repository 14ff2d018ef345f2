"""Any order of claims, ends, losses, thaws and what people ask keeps every promise about a task; leases end by rule."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from popagent_db.pool import Pool, open_pool
from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import new_id
from popagent_proto.task_runner.tasks import (
    CancelTask,
    CreateTask,
    CreateTaskBody,
    DeleteTask,
    ResolveTask,
    ResolveTaskBody,
    RetryTask,
    TaskErrorClass,
)
from popagent_rows.leased import Holder, LeaseLostError
from popagent_rows.outbox import Outbox
from popagent_task_runner.tasks import handlers, store
from popagent_task_runner.tasks.creating import Creations
from popagent_task_runner.tasks.deps import TaskDeps
from popagent_task_runner.tasks.ending import Ending, Told, end, end_lost
from popagent_task_runner.tasks.room import Room
from popagent_task_runner.tasks.rows import LeasedTask, TaskRows
from popagent_testing.task_running import Known

T = TypeVar("T")
CAUSES = (None, *get_args(TaskErrorClass))
ROWS = TaskRows(lease_s=600, beat_s=200)


class Awake:
    def wake(self) -> None:
        """Nobody sleeps here: rules claim."""

    def wake_for_stops(self) -> None:
        """Nobody runs here: rules end."""


async def unpublished(subject: str, payload: bytes, msg_id: str, headers: dict[str, str]) -> int:
    raise AssertionError("no relay runs here")


@dataclass
class Held:
    """An attempt that was claimed: what its runner would write with, for ever after."""

    row: LeasedTask
    turn_id: str


class Tasks(RuleBasedStateMachine):
    dsn: str
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.pool = self.run(self.open())
        self.outbox = Outbox(self.pool, unpublished)
        self.deps = TaskDeps(self.pool, self.outbox, Known(), Awake(), Room(1_000), Creations(self.pool))
        self.held: list[Held] = []
        self.seen: dict[str, tuple[str, int, int]] = {}
        self.resolved: set[str] = set()
        self.retried: set[str] = set()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> Pool:
        pool = await open_pool(self.dsn, application_name="machine", max_size=2)
        await pool.execute("truncate tasks, task_activity, task_intents, runners, hook_runs, outbox")
        return pool

    def teardown(self) -> None:
        self.run(self.pool.close())

    def any_task(self, data: st.DataObject) -> str:
        ids = [row["id"] for row in self.run(self.pool.fetch("select id from tasks order by created_at, id"))]
        return str(data.draw(st.sampled_from(ids))) if ids else "none"

    @initialize()
    def first(self) -> None:
        self.run(self.create("user", False, 3, "home"))

    async def create(self, source: Any, workflow: bool, most: int, workspace: str) -> None:
        body = CreateTaskBody(prompt="p", workspace_id=workspace, max_attempts=most)
        await handlers.create_task(
            self.deps, CreateTask(command_id=new_id(), body=body, source=source, workflow=workflow)
        )

    @rule(
        source=st.sampled_from(["user", "user", "self-update"]),
        workflow=st.booleans(),
        most=st.integers(1, 4),
        workspace=st.sampled_from(["home", "north"]),
    )
    def make(self, source: str, workflow: bool, most: int, workspace: str) -> None:
        self.run(self.create(source, workflow, most, workspace))

    @rule(limit=st.integers(1, 3))
    def claim(self, limit: int) -> None:
        async def body() -> list[LeasedTask]:
            await self.pool.execute("update tasks set run_at = now() where state = 'queued'")
            async with self.pool.acquire() as conn:
                return await ROWS.claim(conn, Holder.of_this_process(), limit)

        self.held += [Held(row, new_id()) for row in self.run(body())]

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        held = data.draw(st.sampled_from(self.held))
        row = held.row

        async def body() -> bool:
            async with self.outbox.transaction() as conn:
                return await store.START.first(conn, row.id, row.attempt, row.owner, held.turn_id, None) is not None

        current = self.run(self.current(row))
        assert self.run(body()) == current

    async def current(self, row: LeasedTask) -> bool:
        sql = "select count(*) from tasks where id = $1 and attempt = $2 and owner = $3 and state = 'running'"
        return bool(await self.pool.fetchval(sql, row.id, row.attempt, row.owner))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), number=st.integers(1, 3))
    def act(self, data: st.DataObject, number: int) -> None:
        row = data.draw(st.sampled_from(self.held)).row
        current = self.run(self.current(row))

        async def body() -> int:
            sql = "delete from task_intents where task_id = $1 and attempt = $2 and step = $3"
            await self.pool.execute(sql, row.id, row.attempt, number)
            async with self.pool.acquire() as conn:
                return await store.INTENT.run(conn, row.id, row.attempt, row.owner, number, "c", "act", "x")

        assert self.run(body()) == int(current)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), cause=st.sampled_from(CAUSES))
    def finish(self, data: st.DataObject, cause: Any) -> None:
        held = data.draw(st.sampled_from(self.held))
        current = self.run(self.current(held.row))

        async def body() -> None:
            async with self.outbox.transaction() as conn:
                await end(conn, self.outbox, held.row, Told(held.turn_id, None), Ending(cause, None, "out"))

        try:
            self.run(body())
        except LeaseLostError:
            assert not current
        else:
            assert current

    @rule(restart=st.booleans(), ran_s=st.sampled_from([1.0, 1e6]))
    def lose_all(self, restart: bool, ran_s: float) -> None:
        async def body() -> None:
            await self.pool.execute(
                "update tasks set lease_until = now() - interval '1 second',"
                " boot_id = case when $2 then gen_random_uuid() else owner end,"
                " started_at = started_at - make_interval(secs => $1) where state = 'running'",
                ran_s,
                restart,
            )
            await self.pool.execute("insert into runners values (gen_random_uuid(), gen_random_uuid())")
            async with self.outbox.transaction() as conn:
                for row in await ROWS.expired.all(conn, 100):
                    await end_lost(conn, self.outbox, row, timeout_s=60)

        self.run(body())

    def person(self, work: Coroutine[Any, Any, Any]) -> bool:
        try:
            self.run(work)
        except (ConflictError, NotFoundError):
            return False
        return True

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        self.person(handlers.cancel_task(self.deps, CancelTask(task_id=self.any_task(data))))

    @rule(data=st.data())
    def resolve(self, data: st.DataObject) -> None:
        task_id = self.any_task(data)
        body = ResolveTaskBody(evidence="seen")
        if self.person(handlers.resolve_task(self.deps, ResolveTask(task_id=task_id, body=body))):
            self.resolved.add(task_id)

    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        task_id = self.any_task(data)
        if self.person(handlers.retry_task(self.deps, RetryTask(task_id=task_id))):
            self.retried.add(task_id)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.person(handlers.delete_task(self.deps, DeleteTask(task_id=self.any_task(data))))

    @invariant()
    def promises_are_kept(self) -> None:
        rows = self.run(
            self.pool.fetch(
                "select id, shown_state as state, attempt, max_attempts, version, remediates, source, owner,"
                " (select r.shown_state from tasks r where r.remediates = tasks.id) as remediation from tasks"
            )
        )
        now = {row["id"]: row for row in rows}
        for row in rows:
            name, state = row["id"], row["state"]
            before, attempt, version = self.seen.get(name, ("queued", 0, -1))
            assert row["attempt"] >= attempt
            assert row["version"] >= version
            assert (state in {"running", "cancelling"}) == (row["owner"] is not None)
            if before in {"completed"}:
                assert state == "completed"
            if before == "dead-letter" and state == "queued":
                assert name in self.retried
            elif before in {"cancelled", "dead-letter"} and state != before:
                assert state == "completed"
                assert name in self.resolved
            if before == "cancelling":
                assert state in {"cancelling", "cancelled"} or name in self.resolved
            if state == "failed":
                # No person is waited for: its remediation is under way, and attempts remain.
                assert row["remediates"] is None
                assert row["attempt"] < row["max_attempts"]
                assert row["remediation"] in {"queued", "running", "cancelling"}
            self.seen[name] = (state, row["attempt"], row["version"])
        keyed = [row for row in rows if row["source"] == "self-update" and row["remediates"] is None]
        assert sum(row["state"] in {"running", "cancelling"} for row in keyed) <= 1
        self.seen = {name: seen for name, seen in self.seen.items() if name in now}

    @invariant()
    def starts_and_stops_alternate(self) -> None:
        told: dict[str, list[tuple[str, str]]] = {}
        news = self.run(
            self.pool.fetch(
                "select aggregate_id as id, subject, payload::json->>'turnId' as turn from outbox order by position"
            )
        )
        for row in news:
            verb = row["subject"].split(".")[3]
            if verb == "tasks-stopped":
                told.setdefault(row["id"], []).append((verb, row["turn"]))
        for stops in told.values():
            assert len(set(stops)) == len(stops)


@pytest.fixture
def run_machine(dsn: str) -> Callable[[int, int], None]:
    def run(examples: int, steps: int) -> None:
        with asyncio.Runner() as runner:
            machine = type("Machine", (Tasks,), {"dsn": dsn, "runner": runner})
            options = settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            run_state_machine_as_test(machine, settings=options)

    return run


def test_random_lives_keep_every_promise(run_machine: Callable[[int, int], None]) -> None:
    run_machine(10, 25)


@pytest.mark.full
@pytest.mark.timeout(900)
def test_many_long_random_lives_keep_every_promise(run_machine: Callable[[int, int], None]) -> None:
    run_machine(300, 60)
