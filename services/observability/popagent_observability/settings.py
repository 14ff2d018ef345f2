"""Settings of the observability service."""

from __future__ import annotations

from popagent_host import ServiceSettings
from popagent_kit.settings import setting


class ObservabilitySettings(ServiceSettings):
    """Read once at start."""

    retention_days: int = setting(
        "POPAGENT_TRACE_RETENTION_DAYS",
        14,
        description="Days that traces and logs are kept; older days are dropped whole.",
        ge=1,
        le=3_650,
    )
    max_mb: int = setting(
        "POPAGENT_TRACE_MAX_MB",
        5_120,
        description="Size of the store in MB above which the oldest days are dropped early; today's never is.",
        ge=64,
    )
    lost_after_s: float = setting(
        "POPAGENT_TRACE_LOST_AFTER_S",
        900.0,
        description="Seconds of silence after which what never ended is shown as an error and no longer as running.",
        gt=0,
        le=86_400,
    )
