"""Wall-clock time, always aware and UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def wire_time(moment: datetime) -> str:
    """Return `moment` as RFC 3339 UTC with milliseconds and `Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
