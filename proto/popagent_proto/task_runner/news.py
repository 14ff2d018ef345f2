"""What came to a task since it was last looked at: for who follows one."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Query, View
from popagent_proto.task_runner.activity import RECORDS_KEPT, ActivityRecord
from popagent_proto.task_runner.tasks import TaskSummary


class TaskNews(View):
    """Records that are new or grew, in the order of the transcript; the task itself only behind the last of them."""

    records: list[ActivityRecord]
    revision: int = Field(description="Of the transcript; ask for what came after this one.")
    more: bool
    reset: bool = Field(description="There is no such place in the transcript: load it again.")
    task: TaskSummary | None = Field(description="As it is now; null while it is of the version that was named.")


class ReadTaskNews(Query[TaskNews]):
    """What was written after a revision of the transcript, and the task when it is newer than a version."""

    subject: ClassVar = "popagent.task-runner.qry.tasks-news.v1"

    task_id: Id
    after: int | None = Field(default=None, ge=0, le=2**62, description="From now on when absent.")
    version: int | None = Field(default=None, ge=0, le=2**62, description="The task in any case when absent.")
    limit: int = Field(default=RECORDS_KEPT, ge=1, le=RECORDS_KEPT)
