"""Cursors of lists: where the last row of a page stands, opaque to clients, who send it back for the next one."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import is_client_id


class UnknownCursorError(InvalidInputError):
    """This cursor is not one that a list answered."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message, field="cursor")


def encode(moment: datetime, row_id: str) -> str:
    """Return the cursor of a row in a list that is ordered by a moment and then by id."""
    return base64.urlsafe_b64encode(f"{moment.isoformat()}|{row_id}".encode()).decode()


def decode(cursor: str) -> tuple[datetime, str]:
    """Return the moment and the id of the row.

    Raises:
        UnknownCursorError: Not a cursor of ours.
    """
    try:
        moment, _, row_id = base64.urlsafe_b64decode(cursor.encode()).decode().partition("|")
    except ValueError as error:
        raise UnknownCursorError from error
    if not is_client_id(row_id):
        raise UnknownCursorError
    return moment_of(moment), row_id


def moment_of(text: str) -> datetime:
    """Return the moment, in UTC.

    Raises:
        UnknownCursorError: Not an aware time in ISO 8601, or one beyond all calendars.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(text)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise UnknownCursorError from error
