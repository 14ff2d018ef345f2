from __future__ import annotations

import contextlib
import itertools
import re
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_kit.errors import InvalidInputError
from popagent_scheduler.cron import parse

BERLIN = ZoneInfo("Europe/Berlin")
KOLKATA = ZoneInfo("Asia/Kolkata")


def moments(rule: str, start: str, count: int, zone: ZoneInfo = BERLIN) -> list[str]:
    """The next ones as a clock there shows them."""
    found = itertools.islice(parse(rule).after(datetime.fromisoformat(start), zone), count)
    return [moment.astimezone(zone).isoformat() for moment in found]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("", "missing"),
        ("   ", "missing"),
        ("61 * * * *", "The minute cannot be “61”"),
        ("*/0 * * * *", "The minute cannot be “*/0”"),
        ("* 24 * * *", "The hour cannot be “24”"),
        ("0 0 32 * *", "The day of the month cannot be “32”"),
        ("0 0 * 13 *", "The month cannot be “13”"),
        ("0 0 * * 8", "The day of the week cannot be “8”"),
        ("0 0 30 2 *", "never fires"),
        ("0 0 31 2,4,6 *", "never fires"),
        ("0 0 30-31 2 *", "never fires"),
        ("0 * * * * *", "has 6 fields"),
        ("* * * *", "has 4 fields"),
        ("hourly", "has one field"),
        ("@every 0s", "no name of a rule"),
        ("@reboot", "@hourly, @daily"),
        ("0 0 L-3 * *", "The day of the month cannot be"),
        ("5-1 * * * *", "The minute cannot be “5-1”"),
        ("٣ * * * *", "The minute cannot be"),
        ("0 0 * * ²L", "The day of the week cannot be"),
        ("0 0 * * \x00", "The day of the week cannot be"),
        ("1,,2 * * * *", "The minute cannot be “1,,2”"),
        ("* * * * *" + " " * 10 + "\n" + "*," * 5_000, "at most 200 characters"),
        ("*," * 5_000 + "* * * * *", "at most 200 characters"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_field(rule: str, told: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(told)) as refused:
        parse(rule)

    assert refused.value.field == "cron"
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("name", "text"), [("@hourly", "0 * * * *"), (" @Daily ", "0 0 * * *"), ("@weekly", "0 0 * * 0")]
)
def test_names_stand_for_rules(name: str, text: str) -> None:
    assert parse(name).text == text


def test_a_rule_is_told_in_words() -> None:
    assert parse("30 7 * * MON-FRI").words == "At 07:30 on Monday through Friday"


@pytest.mark.parametrize(
    ("rule", "start", "expected"),
    [
        # The clock goes from 2:00 to 3:00 on 29 March 2026.
        ("30 2 * * *", "2026-03-28T12:00Z", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("0 2,3 * * *", "2026-03-28T12:00Z", ["2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"]),
        ("0 * * * *", "2026-03-29T00:30Z", ["2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"]),
        # It goes from 3:00 back to 2:00 on 25 October 2026.
        ("30 2 * * *", "2026-10-24T12:00Z", ["2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"]),
        ("0 * * * *", "2026-10-24T23:30Z", ["2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00"]),
    ],
)
def test_clocks_that_are_put_forward_or_back(rule: str, start: str, expected: list[str]) -> None:
    assert moments(rule, start, 2) == expected


def test_a_zone_of_half_hours() -> None:
    assert moments("0 9 * * *", "2026-03-01T00:00Z", 1, KOLKATA) == ["2026-03-01T09:00:00+05:30"]


RULES = st.sampled_from(
    [
        "*/7 * * * *",
        "30 2 * * *",
        "0 2,3 * * *",
        "15 */2 * * *",
        "0 0 29 2 *",
        "30 1 * * SUN",
        "5-50/7 1-3 * * *",
        "@monthly",
    ]
)
TIMES = st.datetimes(datetime(2025, 1, 1), datetime(2028, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 (bounds are naive)


@given(RULES, TIMES)
def test_moments_rise_and_the_newest_is_the_last_that_was_not_after(rule: str, start: datetime) -> None:
    cron = parse(rule)
    found = list(itertools.islice(cron.after(start, BERLIN), 4))

    assert found == sorted(set(found))
    assert found[0] > start
    for moment, following in itertools.pairwise(found):
        assert cron.newest(moment, BERLIN) == moment
        assert cron.newest(following - timedelta(seconds=1), BERLIN) == moment


@given(st.text(alphabet="0123456789*/,-#LWSUNJAFEB@ ", max_size=60))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    began = time.thread_time()
    with contextlib.suppress(InvalidInputError):
        assert next(parse(text).after(datetime(2026, 1, 1, tzinfo=UTC), BERLIN)) > datetime(2026, 1, 1, tzinfo=UTC)
    assert time.thread_time() - began < 1
