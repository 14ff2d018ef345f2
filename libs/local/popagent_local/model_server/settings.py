"""Settings of the model server."""

from __future__ import annotations

import os

from popagent_kit.settings import setting
from popagent_local.model_server.weights import WeightSettings


def spare_cores() -> int:
    """Return the cores of this machine less one, at least one: the suite must go on while a model thinks."""
    return max(1, (os.cpu_count() or 1) - 1)


class ModelServerSettings(WeightSettings):
    """What the process `python -m popagent_local.model_server` reads from its environment."""

    threads: int | None = setting(
        "POPAGENT_MODEL_THREADS",
        None,
        description="Threads of the embedded model; when empty, all cores read a prompt, and all but one write.",
        ge=1,
        le=256,
    )
    context: int = setting(
        "POPAGENT_MODEL_CONTEXT",
        8_192,
        description="Context window of the embedded model, in tokens.",
        ge=1_024,
        le=131_072,
    )

    def thread_count(self) -> int:
        """Return the threads that write."""
        return self.threads or spare_cores()

    def prompt_thread_count(self) -> int:
        """Return the threads that read a prompt, which halves the wait for the first word on two cores."""
        return self.threads or os.cpu_count() or 1
