"""Where the runs of agents may be, and whom they ask: the same for every service that carries some out."""

from __future__ import annotations

from pathlib import Path

from pydantic import field_validator

from popagent_kit.settings import Settings, default_workspace_root, setting
from popagent_runs.hooks.origins import parse_origins


class RunSettings(Settings):
    """Read once at start."""

    workspace_root: Path | None = setting(
        "POPAGENT_WORKSPACE_ROOT",
        None,
        description="The folder below which every workspace lies; `workspace/` of the clone or of the home when unset.",
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

    @field_validator("hook_origins")
    @classmethod
    def _are_origins(cls, text: str) -> str:
        parse_origins(text)
        return text

    def root(self) -> Path:
        """Return the workspace root, absolute."""
        return (self.workspace_root or default_workspace_root()).expanduser().absolute()
