"""Settings of the task-runner service."""

from __future__ import annotations

from popagent_host import ServiceSettings
from popagent_kit.settings import setting
from popagent_runs.settings import RunSettings


class TaskRunnerSettings(RunSettings, ServiceSettings):
    """Read once at start; how many tasks run at once and how long is set in the page."""

    queue_depth: int = setting(
        "POPAGENT_TASK_QUEUE_DEPTH",
        1_000,
        description="Tasks of one workspace that may wait; another one is refused with 429.",
        ge=1,
        le=100_000,
    )
    kept_days: int = setting(
        "POPAGENT_TASK_DAYS",
        180,
        description="Days that completed and cancelled tasks are kept, 0 for ever. Failed ones wait for a person.",
        ge=0,
        le=36_500,
    )
    # With what executors get to end, and the margin of the host, within what every service is given for its stop.
    stop_grace_s: float = setting(
        "POPAGENT_TASK_STOP_GRACE_S",
        5.0,
        description="Seconds that running tasks get to finish when the service is told to stop; then they are ended, "
        "and run again where that repeats no side effect.",
        ge=0,
        le=10,
    )
