"""Lists of tasks: newest first, each state by an index of its own, never a prompt or a transcript."""

from __future__ import annotations

from typing import Final, get_args

from popagent_db.pool import Pool
from popagent_db.query import Query
from popagent_kit import cursors
from popagent_proto.task_runner.tasks import ListTasks, TaskList, TaskState, TaskSummary
from popagent_task_runner.tasks.store import SUMMARY

STATES: Final[tuple[TaskState, ...]] = get_args(TaskState)


# $1 states, $2 and $3 the last row seen or null, $4 the limit, $5 source, $6 text in the title, $7 the filter's value.
def _list(also: str) -> Query[TaskSummary]:
    return Query(
        TaskSummary,
        f"""
        select merged.*
        from unnest($1::text[]) as wanted (state)
        cross join lateral (
            select {SUMMARY}
            from tasks
            where shown_state = wanted.state and {also}
                and ($2::timestamptz is null or (created_at, id) < ($2, $3::text))
                and ($5::text is null or source = $5)
                and ($6::text is null or position(lower($6) in lower(title)) > 0)
            order by created_at desc, id desc
            limit $4
        ) merged
        order by merged.created_at desc, merged.id desc
        limit $4
        """,  # noqa: S608 (constants of this module)
    )


LIST: Final = _list("$7::text is null")
LIST_OF_WORKSPACE: Final = _list("workspace_id = $7::text")
LIST_OF_SCHEDULE: Final = _list("schedule_id = $7::text and ($8::text is null or workspace_id = $8)")


def statement(query: ListTasks) -> tuple[Query[TaskSummary], tuple[object, ...]]:
    """Return what answers the query, one row more than its limit, and the arguments.

    Raises:
        UnknownCursorError: The cursor is not one of ours.
    """
    created_at, task_id = (None, None) if query.cursor is None else cursors.decode(query.cursor)
    states = sorted(set(query.state or STATES))
    arguments = (states, created_at, task_id, query.limit + 1, query.source, query.q)
    if query.schedule_id is not None:
        return LIST_OF_SCHEDULE, (*arguments, query.schedule_id, query.workspace_id)
    if query.workspace_id is not None:
        return LIST_OF_WORKSPACE, (*arguments, query.workspace_id)
    return LIST, (*arguments, None)


async def page(pool: Pool, query: ListTasks) -> TaskList:
    """Return one page, newest first."""
    wanted, arguments = statement(query)
    async with pool.acquire() as conn:
        found = await wanted.all(conn, *arguments)
    items = found[: query.limit]
    more = cursors.encode(items[-1].created_at, items[-1].id) if len(found) > query.limit else None
    return TaskList(items=items, next_cursor=more)
