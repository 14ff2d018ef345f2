"""`popagent down`: end the supervisor of this home, and return when all is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from popagent_kit.errors import UnavailableError
from popagent_local.programs import LONGEST_STOP_S
from popagent_local.state import SuiteState, holder, is_held

POLL_S: Final = 0.05


def down(home: Path, timeout_s: float = LONGEST_STOP_S) -> bool:
    """Stop the suite and return True, or False when none runs.

    Raises:
        UnavailableError: It still runs after `timeout_s`; the message says how to kill it.
    """
    if not is_held(home):
        return False
    state = holder(home)
    if state is None:
        raise UnavailableError(f"{home} is held by a process that has not said its name yet; try again in a second.")
    with contextlib.suppress(ProcessLookupError):
        os.kill(state.pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while is_held(home) or _alive(state):
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"popagent (process {state.pid}) still runs after {timeout_s:.0f} s. Kill it: kill -9 {state.pid}"
            )
        time.sleep(POLL_S)
    return True


def _alive(state: SuiteState) -> list[str]:
    return [name for name, row in state.programs.items() if row.pid and Path(f"/proc/{row.pid}").exists()]
