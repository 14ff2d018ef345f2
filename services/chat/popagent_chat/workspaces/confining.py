"""Whether agents can run commands here: told beside the rest, since everything else works without."""

from __future__ import annotations

import asyncio

from popagent_sandbox.confined import ConfinementError
from popagent_sandbox.confinement import confinement_problem


async def check_commands() -> None:
    """Return when commands can be confined.

    Raises:
        ConfinementError: They cannot, and so none is run; the message says why.
    """
    problem = await asyncio.to_thread(confinement_problem)
    if problem is not None:
        raise ConfinementError(problem)
