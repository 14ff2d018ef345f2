"""What hooks did in the runs of tasks, and what they were told of tasks."""

from __future__ import annotations

from typing import Final

from popagent_db.query import Query
from popagent_runs.hooks.audited import audit_queries

AUDIT: Final = audit_queries("task_id", "tasks")

# None when the task is gone.
VERSION: Final = Query(int, "select version from tasks where id = $1")
