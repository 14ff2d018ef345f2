"""Settings of the model connection."""

from __future__ import annotations

from popagent_kit.settings import setting
from popagent_kit.shared_settings import ModelEndpointSettings


class ModelSettings(ModelEndpointSettings):
    """Where the model is, and how long to wait for it."""

    model: str | None = setting(
        "POPAGENT_MODEL",
        None,
        description="Model to use when the settings name none; else the server's first.",
        max_length=200,
    )
    connect_timeout_s: float = setting(
        "POPAGENT_MODEL_CONNECT_TIMEOUT_S", 5.0, description="Seconds to connect to the model server.", gt=0, le=120
    )
    header_timeout_s: float | None = setting(
        "POPAGENT_MODEL_HEADER_TIMEOUT_S",
        None,
        description="Seconds until the model server begins its answer; empty: 60, on loopback the idle timeout.",
        gt=0,
        le=3600,
    )
    idle_timeout_s: float | None = setting(
        "POPAGENT_MODEL_IDLE_TIMEOUT_S",
        None,
        description="Seconds without a sign of life within an answer; empty: by the model's profile, 120 or 300.",
        gt=0,
        le=3600,
    )
    limits: str = setting(
        "POPAGENT_MODEL_LIMITS",
        "qwen2.5-coder-1.5b-instruct=1",
        description="Calls at a time by model pattern, as `pattern=n, pattern=n`; a model that fits none has no limit.",
        max_length=2_000,
    )
