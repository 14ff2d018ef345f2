"""Any order of claims, beats, expiries, sweeps, stops and late writes keeps one live owner and final ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg
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

from popagent_rows.leased import End, Holder, LeasedRow, LeasedRows, LeaseLostError, Requeue
from popagent_testing.leased_work import CREATE, ENQUEUE, NOTE_EFFECT, REQUEST_STOP, WorkRow

T = TypeVar("T")
LIVE = ("queued", "running")
# Leases end only when a rule ends them; and no statement runs out of time on a busy machine.
WORK = LeasedRows("work", WorkRow, lease_s=600, beat_s=200)


@dataclass
class Model:
    """What the row must look like."""

    state: str = "queued"
    attempt: int = 0
    holder: int | None = None
    expired: bool = False
    released: bool = False
    stop_requested: bool = False
    effects: int = 0


class Leases(RuleBasedStateMachine):
    dsn: str
    runner: asyncio.Runner

    def __init__(self) -> None:
        super().__init__()
        self.conn = self.run(self.connect())
        self.holders = [Holder.of_this_process() for _ in range(2)]
        self.rows: dict[str, Model] = {}
        self.leases: list[tuple[int, LeasedRow]] = []  # every lease that was ever given, with its holder

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def connect(self) -> asyncpg.Connection[asyncpg.Record]:
        conn = await asyncpg.connect(self.dsn)
        await conn.execute("truncate work, effects")
        return conn

    def teardown(self) -> None:
        self.run(self.conn.close())

    def is_current(self, holder: int, row: LeasedRow) -> bool:
        model = self.rows[row.id]
        return model.state == "running" and model.holder == holder and model.attempt == row.attempt

    @initialize()
    def first_row(self) -> None:
        self.enqueue()

    @rule()
    def enqueue(self) -> None:
        name = f"r{len(self.rows)}"
        self.run(ENQUEUE.run(self.conn, name, ""))
        self.rows[name] = Model()

    @rule(holder=st.integers(0, 1), limit=st.integers(1, 3))
    def claim(self, holder: int, limit: int) -> None:
        queued = sum(model.state == "queued" for model in self.rows.values())
        got = self.run(WORK.claim(self.conn, self.holders[holder], limit))
        assert len(got) == min(limit, queued)
        for row in got:
            model = self.rows[row.id]
            assert model.state == "queued"
            assert row.attempt == model.attempt + 1
            model.state, model.attempt, model.holder, model.expired = "running", row.attempt, holder, False
            model.released = False
            self.leases.append((holder, row))

    @precondition(lambda self: self.leases)
    @rule(holder=st.integers(0, 1))
    def beat(self, holder: int) -> None:
        mine = [row for owner, row in self.leases if owner == holder]
        for answer in self.run(WORK.beat(self.conn, self.holders[holder], mine)):
            row = next(row for row in mine if (row.id, row.attempt) == (answer.id, answer.attempt))
            current = self.is_current(holder, row)
            beaten = current and not self.rows[row.id].released
            assert (answer.beaten, answer.ours) == (beaten, current)
            if current:
                assert answer.stop_requested == self.rows[row.id].stop_requested
            if beaten:
                self.rows[row.id].expired = False

    @precondition(lambda self: any(model.state == "running" for model in self.rows.values()))
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n for n, m in self.rows.items() if m.state == "running"]))
        sql = "update work set lease_until = least(lease_until, clock_timestamp() - interval '1 second') where id = $1"
        self.run(self.conn.execute(sql, name))
        self.rows[name].expired = True

    @rule(holder=st.integers(0, 1), verdict=st.sampled_from(["requeue", "end", "take", "leave"]))
    def sweep(self, holder: int, verdict: str) -> None:
        async def body() -> list[LeasedRow]:
            taken: list[LeasedRow] = []
            async with self.conn.transaction():
                found = await WORK.expired.all(self.conn, 10)
                assert {row.id for row in found} == {n for n, m in self.rows.items() if m.expired}
                for row in found:
                    if verdict == "requeue":
                        await WORK.settle(self.conn, row, Requeue())
                    elif verdict == "end":
                        await WORK.settle(self.conn, row, End("failed"))
                    elif verdict == "take":
                        taken.append(await WORK.take(self.conn, row, self.holders[holder]))
            return taken

        taken = self.run(body())
        for model in (model for model in self.rows.values() if model.expired and verdict != "leave"):
            model.expired = model.released = False
            model.state = {"requeue": "queued", "end": "failed", "take": "running"}[verdict]
            model.holder = holder if verdict == "take" else None
        for row in taken:
            self.rows[row.id].attempt += 1
            assert row.attempt == self.rows[row.id].attempt
            self.leases.append((holder, row))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), end=st.sampled_from(["completed", "stopped", None]))
    def write(self, data: st.DataObject, end: str | None) -> None:
        holder, row = data.draw(st.sampled_from(self.leases))
        current = self.is_current(holder, row)

        async def body() -> None:
            async with self.conn.transaction():
                await WORK.fence(self.conn, row)
                await NOTE_EFFECT.run(self.conn, row.id, row.attempt, row.owner)
                if end is not None:
                    await WORK.settle(self.conn, row, End(end))

        try:
            self.run(body())
        except LeaseLostError:
            assert not current
            return
        assert current
        model = self.rows[row.id]
        model.effects += 1
        if end is not None:
            model.state, model.holder, model.expired = end, None, False

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), release=st.booleans())
    def give_up(self, data: st.DataObject, release: bool) -> None:
        holder, row = data.draw(st.sampled_from(self.leases))
        current = self.is_current(holder, row)
        model = self.rows[row.id]
        work = WORK.fenced(self.conn, row, WORK.let_go) if release else WORK.settle(self.conn, row, Requeue())
        try:
            self.run(work)
        except LeaseLostError:
            assert not current
            return
        assert current
        if release:
            model.expired = model.released = True
        else:
            model.state, model.holder, model.expired = "queued", None, False

    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(list(self.rows)))
        model = self.rows[name]
        asked = self.run(REQUEST_STOP.run(self.conn, name))
        if model.state in LIVE:
            model.stop_requested = True
        assert asked == (1 if model.state in LIVE else 0)

    @invariant()
    def rows_are_as_the_model_says(self) -> None:
        if not self.rows:
            return
        found = self.run(
            self.conn.fetch(
                "select id, state, attempt, owner, stop_requested,"
                " (select count(*) from effects where effects.id = work.id) as effects from work"
            )
        )
        assert {row["id"] for row in found} == set(self.rows)
        for row in found:
            model = self.rows[row["id"]]
            owner = self.holders[model.holder].owner if model.holder is not None else None
            assert (row["state"], row["attempt"], row["effects"]) == (model.state, model.attempt, model.effects)
            assert row["owner"] == owner
            assert row["stop_requested"] == model.stop_requested


Run = Callable[[int, int], None]


@pytest.fixture
def run_machine(dsn: str) -> Run:
    def run(examples: int, steps: int) -> None:
        with asyncio.Runner() as runner:

            async def create() -> None:
                conn = await asyncpg.connect(dsn)
                await conn.execute(CREATE)
                await conn.close()

            runner.run(create())
            machine = type("Machine", (Leases,), {"dsn": dsn, "runner": runner})
            options = settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            run_state_machine_as_test(machine, settings=options)

    return run


def test_any_order_of_events_keeps_one_owner_and_final_ends(run_machine: Run) -> None:
    run_machine(25, 25)


@pytest.mark.full
@pytest.mark.timeout(400)
def test_any_order_of_events_keeps_one_owner_and_final_ends_at_length(run_machine: Run) -> None:
    run_machine(600, 60)
