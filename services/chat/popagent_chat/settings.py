"""Settings of the chat service."""

from __future__ import annotations

from popagent_host import ServiceSettings
from popagent_kit.settings import setting
from popagent_kit.shared_settings import TurnStopSettings
from popagent_runs.settings import RunSettings


class ChatSettings(RunSettings, TurnStopSettings, ServiceSettings):
    """Read once at start."""

    turn_slots: int = setting(
        "POPAGENT_TURN_SLOTS", 64, description="Turns that one chat process runs at once.", ge=1, le=1_000
    )

    clone_minutes: float = setting(
        "POPAGENT_CLONE_MINUTES", 30.0, description="Minutes that cloning a repository may take.", gt=0, le=1_440
    )

    clone_mib: int = setting(
        "POPAGENT_CLONE_MIB", 4_096, description="MiB of the disk that a cloned repository may take.", ge=1
    )
