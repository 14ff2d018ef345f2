"""Settings of the chat service."""

from __future__ import annotations

from pathlib import Path

from pydantic import field_validator

from popagent_host import ServiceSettings
from popagent_kit.settings import default_workspace_root, setting
from popagent_kit.shared_settings import TurnStopSettings
from popagent_runs.hooks.origins import parse_origins


class ChatSettings(TurnStopSettings, ServiceSettings):
    """Read once at start."""

    workspace_root: Path | None = setting(
        "POPAGENT_WORKSPACE_ROOT",
        None,
        description="The folder below which every workspace lies; `workspace/` of the clone or of the home when unset.",
    )
    turn_slots: int = setting(
        "POPAGENT_TURN_SLOTS", 64, description="Turns that one chat process runs at once.", ge=1, le=1_000
    )

    hook_origins: str = setting(
        "POPAGENT_HOOK_ORIGINS",
        "",
        description="Origins that hooks may be at, with commas, for example https://guard.example.com,"
        "http://127.0.0.1:9000; none when unset.",
    )

    hook_folder: Path | None = setting(
        "POPAGENT_HOOK_FOLDER",
        None,
        description="The folder of the programs that hooks may run, which find it as /hooks; none is run when unset.",
    )

    clone_minutes: float = setting(
        "POPAGENT_CLONE_MINUTES", 30.0, description="Minutes that cloning a repository may take.", gt=0, le=1_440
    )

    clone_mib: int = setting(
        "POPAGENT_CLONE_MIB", 4_096, description="MiB of the disk that a cloned repository may take.", ge=1
    )

    @field_validator("hook_origins")
    @classmethod
    def _are_origins(cls, text: str) -> str:
        parse_origins(text)
        return text

    def root(self) -> Path:
        """Return the workspace root, absolute."""
        return (self.workspace_root or default_workspace_root()).expanduser().absolute()
