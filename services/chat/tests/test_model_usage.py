"""What a call of the model cost is stored once, also when the database was away as it ended."""

from __future__ import annotations

import pytest

from popagent_db.pool import Pool, open_pool
from popagent_models.usage import UsageRecord
from popagent_runs import late_rows
from popagent_runs.models.usage import DROPPED, UsageTable


def record(turn: str, tokens: int, model: str = "m") -> UsageRecord:
    return UsageRecord(requested_model=model, route_model=model, source="default", turn_id=turn, output_tokens=tokens)


async def stored(pool: Pool, turn: str) -> list[int]:
    rows = await pool.fetch("select output_tokens from model_usage where turn_id = $1 order by created_at", turn)
    return [row["output_tokens"] for row in rows]


async def test_a_call_that_ended_while_the_database_was_away_is_stored_once_when_it_is_back(
    pool: Pool, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(late_rows, "AWAY_S", 0.0)
    away = await open_pool(dsn, application_name="test", max_size=1)
    usage = UsageTable(away)
    first = record("away", 1)

    await away.close()
    await usage.record(first)
    unstored = await stored(pool, "away")
    usage._pool = pool
    await usage.record(record("away", 2))
    await usage.record(first)  # as after a commit without an answer

    assert (unstored, await stored(pool, "away")) == ([], [1, 2])
    assert "usage records wait for the database" in caplog.text


async def test_a_call_that_no_table_can_hold_is_counted_and_takes_no_other_with_it(pool: Pool) -> None:
    usage = UsageTable(pool)
    before = DROPPED._value.get()

    usage.add([record("odd", 1), record("odd", 2, "\x00"), record("odd", 3)])
    await usage.close()

    assert await stored(pool, "odd") == [1, 3]
    assert DROPPED._value.get() - before == 1
