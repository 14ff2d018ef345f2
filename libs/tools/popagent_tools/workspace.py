"""What the tools that look into a workspace share: its folder, a thread for the look, and room for what they tell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from popagent_agent.run_context import RunContext, RunWorkspace
from popagent_kit.errors import ConflictError

T = TypeVar("T")

CHARACTERS_PER_TOKEN: Final = 3
# Left for the line that says what is missing, and where to go on.
NOTE_TOKENS: Final = 40


class NoWorkspaceError(ConflictError):
    """There is no workspace in this conversation, so there are no files to look at."""

    code = "no_workspace"


def workspace_of(run: RunContext) -> RunWorkspace:
    """Return the workspace that the run may look into.

    Raises:
        NoWorkspaceError: There is none for it.
    """
    if run.workspace is None or run.workspace.access == "none":
        raise NoWorkspaceError
    return run.workspace


def room(run: RunContext, fewest: int) -> int:
    """Return how many characters fit the model, `fewest` at least."""
    return max(fewest, (run.model.tool_output_tokens - NOTE_TOKENS) * CHARACTERS_PER_TOKEN)


async def in_thread(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run `work` in a thread; when the call is cancelled the thread is told, since it cannot be ended from outside."""
    stopped = threading.Event()
    try:
        return await asyncio.to_thread(work, stopped.is_set)
    except asyncio.CancelledError:
        stopped.set()
        raise
