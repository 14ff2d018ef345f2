"""Jobs of chat: what takes longer than a request."""

from __future__ import annotations

from typing import ClassVar

from popagent_proto.base import Event
from popagent_proto.common import JobQuery, JobsQuery, JobView


class GetChatJob(JobQuery):
    """How far a job of chat is."""

    subject: ClassVar = "popagent.chat.qry.jobs-get.v1"


class ListChatJobs(JobsQuery):
    """The newest jobs of chat."""

    subject: ClassVar = "popagent.chat.qry.jobs-list.v1"


class JobChanged(Event):
    """A job was stored, came further, or ended; told a few times a second at most."""

    subject: ClassVar = "popagent.chat.evt.jobs-changed.v1"

    job: JobView
