"""What an operator may set about the streams; read by whoever makes them."""

from __future__ import annotations

from popagent_kit.settings import Settings, setting


class StreamSettings(Settings):
    """Limits that depend on the machine, not on the contract."""

    live_age_s: int = setting(
        "POPAGENT_LIVE_AGE_S",
        24 * 3_600,
        description="Seconds that the live frames of turns and tasks are kept; a checkpoint holds what is older.",
        ge=2,
        le=24 * 3_600,
    )
