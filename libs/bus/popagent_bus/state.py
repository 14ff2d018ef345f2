"""How the connection is, for readiness: connected, refused subjects, missing consumers."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

# A refusal is a defect of rights or of code; long enough to be seen, short enough that one odd message does not
# keep a service out for ever.
REFUSAL_SHOWN_S: Final = 300.0
REFUSALS_KEPT: Final = 50


@dataclass
class BusState:
    """Written by the connection, read by readiness."""

    connected: bool = False
    closed: bool = False
    reconnects: int = 0
    missing_consumers: set[str] = field(default_factory=set)
    refusals: dict[str, float] = field(default_factory=dict)

    def note_refusal(self, reason: str) -> None:
        """Remember what the server refused, newest last."""
        self.refusals.pop(reason, None)
        self.refusals[reason] = time.monotonic()
        while len(self.refusals) > REFUSALS_KEPT:
            self.refusals.pop(next(iter(self.refusals)))

    @property
    def permission_errors(self) -> list[str]:
        """Return what was refused in the last five minutes."""
        since = time.monotonic() - REFUSAL_SHOWN_S
        return [reason for reason, at in self.refusals.items() if at >= since]

    def problem(self) -> str | None:
        """Return in words why the bus is not ready, None when it is."""
        if self.closed or not self.connected:
            return "not connected to NATS"
        if self.missing_consumers:
            return f"consumer missing: {', '.join(sorted(self.missing_consumers))}"
        if refused := self.permission_errors:
            return f"NATS refused: {refused[-1]}"
        return None
