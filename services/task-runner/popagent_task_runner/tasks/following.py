"""Who follows a task: woken after each write of its transcript, and answered with what came since."""

from __future__ import annotations

from popagent_bus import Bus, Handlers
from popagent_proto import matrix
from popagent_proto.task_runner.news import ReadTaskNews, TaskNews
from popagent_proto.task_runner.tasks import TaskNotFoundError
from popagent_task_runner.tasks import store
from popagent_task_runner.tasks.deps import TaskDeps
from popagent_task_runner.tasks.transcript import MARK, PAGE_BYTES, SINCE

handlers = Handlers[TaskDeps]()


class Followers:
    """Everybody who follows a task of this process; a wake-up that is lost costs them some seconds."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def wake(self, task_id: str) -> None:
        """Say that the task's transcript has more; nobody may be listening."""
        self._bus.in_background(self._bus.wake(matrix.transcript_subject(task_id)), "wake who follows a task")


@handlers.answers(ReadTaskNews)
async def read_news(deps: TaskDeps, query: ReadTaskNews) -> TaskNews:
    """Return both as of one moment, so that who hears of the end has all that was said before it."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        task = await store.SHOWN.first(conn, query.task_id)
        if task is None:
            raise TaskNotFoundError
        newest = (await MARK.one(conn, query.task_id)).revision
        after = newest if query.after is None else query.after
        rows = await SINCE.all(conn, query.task_id, after, query.limit, PAGE_BYTES) if after < newest else []
    revision = rows[-1].revision if rows else newest
    more = revision < newest
    return TaskNews(
        records=sorted((row.view() for row in rows), key=lambda record: record.seq),
        revision=revision,
        more=more,
        reset=after > newest,
        task=None if more or task.version == query.version else task,
    )
