from __future__ import annotations

import asyncpg
import pytest

import popagent_runs
import popagent_task_runner
from popagent_db.pool import Pool
from popagent_db.query import prepare_all


async def test_every_statement_fits_the_migrated_schema(pool: Pool) -> None:
    async with pool.acquire() as conn:
        assert await prepare_all(conn, popagent_task_runner) > 25
        assert await prepare_all(conn, popagent_runs) > 0


INSERT = (
    "insert into tasks (id, source, workspace_id, title, prompt, max_attempts{0})"
    " values ('t', 'user', 'w', '', 'p', 3{1})"
)


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        (", state", ", 'cancelling'"),
        (", state", ", 'running'"),
        (", state", ", 'dead-letter'"),
        (", excerpt", ", repeat('a', 501)"),
        (", last_error", ", repeat('a', 1001)"),
    ],
)
async def test_a_row_that_no_move_leads_to_is_refused(pool: Pool, columns: str, values: str) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await pool.execute(INSERT.format(columns, values))


async def test_of_one_key_one_task_runs_and_of_one_parent_there_is_one_remediation(pool: Pool) -> None:
    running = "state = 'running', owner = gen_random_uuid(), boot_id = gen_random_uuid(), lease_until = now()"
    for number in "ab":
        await pool.execute(
            "insert into tasks (id, source, workspace_id, title, prompt, max_attempts, concurrency_key)"
            " values ($1, 'user', 'w', '', 'p', 3, 'key')",
            number,
        )
    await pool.execute(f"update tasks set {running}, remediates = 'x' where id = 'a'")

    for change in (running, "remediates = 'x'"):
        with pytest.raises(asyncpg.UniqueViolationError):
            await pool.execute(f"update tasks set {change} where id = 'b'")
