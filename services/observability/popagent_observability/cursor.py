"""The cursor of the list of traces: the sort key of the last row, opaque to clients."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Final

from popagent_kit.errors import InvalidInputError
from popagent_observability.records import TRACE_ID

# Sorts before every trace in "newest first".
BEGINNING: Final = (datetime(9999, 1, 1, tzinfo=UTC), "")


def encode(started_at: datetime, trace_id: str) -> str:
    """Return the cursor that asks for what comes after this row."""
    return base64.urlsafe_b64encode(f"{started_at.isoformat()}|{trace_id}".encode()).decode()


def decode(cursor: str | None) -> tuple[datetime, str]:
    """Return (started_at, trace_id) of the row before the page.

    Raises:
        InvalidInputError: Not a cursor of ours.
    """
    if cursor is None:
        return BEGINNING
    try:
        moment, _, trace_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        started_at = datetime.fromisoformat(moment)
    except (ValueError, binascii.Error) as error:
        raise InvalidInputError("This cursor is not one that a list answered.", field="cursor") from error
    if started_at.tzinfo is None or TRACE_ID.match(trace_id) is None:
        raise InvalidInputError("This cursor is not one that a list answered.", field="cursor")
    return started_at, trace_id
