"""Messages that every service answers, and shapes that several share."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.errors import ConflictError, NotFoundError
from popagent_kit.ids import Id
from popagent_proto.base import ListView, Moment, Query, View, Wire

# Seconds for which who keeps work takes none in a workspace that is about to be deleted, unless it is opened before.
CLOSED_S: Final = 60.0
# How a turn ends, once.
TurnEnd = Literal["completed", "stopped", "failed", "interrupted"]


class HealthView(View):
    """How one service is; `checks` maps a dependency to `ok` or to the reason why not, in words."""

    service: str
    version: str
    ready: bool
    checks: dict[str, str] = Field(default_factory=dict)
    details: dict[str, str] = Field(default_factory=dict, description="What a check found, in words.")


class HealthQuery(Query[HealthView]):
    """Base of the seven services' health queries; each service has its own subject."""


class ReferencesView(View):
    """How much of what a service keeps refers to something, at this moment."""

    count: int = Field(ge=0)


class OpenedView(View):
    """It takes work again, unless somebody else has closed it too."""


class WorkspaceClosingError(ConflictError):
    """Somebody is about to delete this workspace. If it stays, this can be done in a moment."""

    code = "workspace_closing"
    retryable = True


class BlobRef(Wire):
    """Something too big for a message, kept in the blob bucket for an hour; the digest is checked when it is read."""

    id: Id
    size_bytes: int = Field(ge=0, le=64 * 1024 * 1024)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str = Field(max_length=200)


class JobView(View):
    """A piece of work that takes longer than one request."""

    id: Id
    kind: str
    title: str = Field(default="", description="What it is for, in words.")
    about: Id | None = Field(default=None, description="The id of what it works on.")
    state: Literal["queued", "running", "completed", "failed"]
    progress: float = Field(ge=0, le=1, description="Share that is done; an attempt that was cut off begins anew.")
    note: str = Field(default="", description="What it is doing, in words.")
    error: str | None = Field(default=None, description="Why it failed, or its last attempt did.")
    result: dict[str, Any] | None = Field(default=None, description="What came of it, once it is completed.")
    created_at: Moment
    updated_at: Moment


class JobList(ListView):
    """Jobs that are not over first, then by age, the newest first."""

    items: list[JobView]


class JobNotFoundError(NotFoundError):
    """There is no job with this id, or it ended more than 7 days ago."""


class JobQuery(Query[JobView]):
    """Base of the services' queries for one job, of which each has its own subject. A job is kept for 7 days."""

    job_id: Id


class JobsQuery(Query[JobList]):
    """Base of the services' queries for their newest 100 jobs."""


class GatewayHealth(HealthQuery):
    """How the gateway service is."""

    subject: ClassVar = "popagent.gateway.qry.health-get.v1"


class ChatHealth(HealthQuery):
    """How the chat service is."""

    subject: ClassVar = "popagent.chat.qry.health-get.v1"


class TaskRunnerHealth(HealthQuery):
    """How the task-runner service is."""

    subject: ClassVar = "popagent.task-runner.qry.health-get.v1"


class SchedulerHealth(HealthQuery):
    """How the scheduler service is."""

    subject: ClassVar = "popagent.scheduler.qry.health-get.v1"


class EvolutionWorkerHealth(HealthQuery):
    """How the evolution-worker service is."""

    subject: ClassVar = "popagent.evolution-worker.qry.health-get.v1"


class DocsIndexerHealth(HealthQuery):
    """How the docs-indexer service is."""

    subject: ClassVar = "popagent.docs-indexer.qry.health-get.v1"


class ObservabilityHealth(HealthQuery):
    """How the observability service is."""

    subject: ClassVar = "popagent.observability.qry.health-get.v1"


HEALTH_QUERIES: Final[dict[str, type[HealthQuery]]] = {
    query.subject_parts()[0]: query
    for query in (
        GatewayHealth,
        ChatHealth,
        TaskRunnerHealth,
        SchedulerHealth,
        EvolutionWorkerHealth,
        DocsIndexerHealth,
        ObservabilityHealth,
    )
}
