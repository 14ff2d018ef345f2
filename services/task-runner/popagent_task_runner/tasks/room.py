"""How many more tasks of a workspace may wait, without counting them for each one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

FRESH_S: Final = 1.0
# Several processes take from the same room; near the bound this is nothing, so that each task is counted for.
SHARE: Final = 4


@dataclass
class Room:
    """Lets a quarter of the room that was counted be used, for a second, before waiting tasks are counted again."""

    depth: int
    _left: dict[str, tuple[int, float]] = field(default_factory=dict)

    def to_count(self, workspace_id: str) -> int:
        """Return up to how many waiting tasks are to be counted before another one is stored: 0 for not at all."""
        left, until = self._left.get(workspace_id, (0, 0.0))
        if left > 0 and time.monotonic() < until:
            self._left[workspace_id] = (left - 1, until)
            return 0
        return self.depth

    def counted(self, workspace_id: str, waiting: int) -> bool:
        """Note what was counted, and tell whether there is room for one more."""
        free = self.depth - waiting
        self._left[workspace_id] = (max(0, free - 1) // SHARE, time.monotonic() + FRESH_S)
        return free > 0
