from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta, timezone

import pytest

from popagent_kit import cursors
from popagent_kit.cursors import UnknownCursorError


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


def test_a_cursor_leads_to_its_row_in_utc() -> None:
    moment = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=timezone(timedelta(hours=2)))

    found = cursors.decode(cursors.encode(moment, "row_1"))

    assert found == (moment, "row_1")
    assert found[0].tzinfo == UTC


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "\x00",
        "a" * 5_000,
        base64.urlsafe_b64encode(b"\xff\xfe").decode(),
        _encoded("2026-03-01T12:00:00+00:00"),
        _encoded("2026-03-01T12:00:00|row"),
        _encoded("2026-03-01T12:00:00+00:00|a b"),
        _encoded("0001-01-01T00:00:00+14:00|row"),
        _encoded("99999-01-01T00:00:00+00:00|row"),
    ],
)
def test_what_no_list_answered_is_refused(cursor: str) -> None:
    with pytest.raises(UnknownCursorError, match="not one that a list answered") as refused:
        cursors.decode(cursor)

    assert (refused.value.code, refused.value.field) == ("invalid_input", "cursor")
