"""What hooks did in the runs of tasks."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query

# A task that is gone has no audit any more; what was stored without an answer is not stored twice. What a chat calls
# its session is the task here.
ADD_HOOK_RUN: Final = Query(
    None,
    """
    insert into hook_runs (
        id, task_id, turn_id, trace_id, event, hook_id, hook_name, subject, decision, reason, status, input, output,
        duration_ms
    )
    select $1, t.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14
    from tasks t
    where t.id = $2
    on conflict (id) do nothing
    """,
)
