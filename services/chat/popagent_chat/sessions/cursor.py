"""The cursor of the sessions list: the sort key of the last row, opaque to clients."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import is_client_id


def encode(updated_at: datetime, session_id: str) -> str:
    """Return the cursor that asks for what comes after this row."""
    return base64.urlsafe_b64encode(f"{updated_at.isoformat()}|{session_id}".encode()).decode()


def decode(cursor: str | None) -> tuple[datetime | None, str | None]:
    """Return (updated_at, id), or two Nones for the first page.

    Raises:
        InvalidInputError: Not a cursor of ours.
    """
    if cursor is None:
        return None, None
    try:
        moment, _, session_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
        updated_at = datetime.fromisoformat(moment)
        if updated_at.tzinfo is None or not is_client_id(session_id):
            raise ValueError(cursor)
        return updated_at.astimezone(UTC), session_id
    except (ValueError, OverflowError) as error:
        raise InvalidInputError("This cursor is not one that a list answered.", field="cursor") from error
