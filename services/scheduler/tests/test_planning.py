"""What follows from a time that has come, early, late or much too late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from popagent_scheduler.planning import Plan, plan

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2026-07-01T{text}+00:00")


def planned(when: str, now: str, rule: str = "0 * * * *", minutes: int = 10) -> tuple[list[tuple[str, str]], str]:
    made = plan(rule, at(when), at(now), timedelta(minutes=minutes), BERLIN)
    assert made.next_run_at is not None
    return [(f"{run.planned_at:%H:%M}", run.outcome) for run in made.runs], f"{made.next_run_at:%d %H:%M}"


def test_a_time_that_has_just_come_runs_and_the_next_one_is_set() -> None:
    assert planned("08:00:00", "08:00:01") == ([("08:00", "due")], "01 09:00")


def test_one_within_the_time_for_catching_up_runs_late() -> None:
    assert planned("08:00:00", "08:09:59") == ([("08:00", "due")], "01 09:00")


def test_one_that_is_too_long_ago_is_missed() -> None:
    assert planned("08:00:00", "08:10:01") == ([("08:00", "missed")], "01 09:00")


def test_of_many_that_passed_the_newest_alone_can_run() -> None:
    assert planned("04:00:00", "08:05:00") == ([("04:00", "missed"), ("08:00", "due")], "01 09:00")
    assert planned("04:00:00", "08:30:00") == ([("04:00", "missed"), ("08:00", "missed")], "01 09:00")


def test_without_catching_up_a_time_still_has_a_minute() -> None:
    assert planned("08:00:00", "08:00:59", minutes=0)[0] == [("08:00", "due")]
    assert planned("08:00:00", "08:01:01", minutes=0)[0] == [("08:00", "missed")]


def test_the_note_counts_what_was_missed() -> None:
    made = plan("0 * * * *", at("04:00:00"), at("08:05:00"), timedelta(minutes=10), BERLIN)
    long = plan("* * * * *", at("04:00:00") - timedelta(days=9), at("08:05:00"), timedelta(minutes=10), BERLIN)

    assert made.runs[0].note == "Nothing ran at that time, nor at 3 others after it."
    assert long.runs[0].note == "Nothing ran at that time, nor at more than 1,000 others after it."


def test_a_time_planned_in_another_zone_or_by_another_rule_is_kept() -> None:
    assert planned("08:17:00", "08:17:01") == ([("08:17", "due")], "01 09:00")


@given(
    st.sampled_from(["*/7 * * * *", "30 2 * * *", "0 2,3 * * *", "15 */2 * * SUN"]),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1), timezones=st.just(UTC)),  # noqa: DTZ001 (bounds are naive)
    st.timedeltas(timedelta(0), timedelta(days=9)),
    st.integers(0, 600),
)
def test_at_most_one_runs_and_the_next_is_later_than_now(
    rule: str, when: datetime, late: timedelta, minutes: int
) -> None:
    made: Plan = plan(rule, when, when + late, timedelta(minutes=minutes), BERLIN)

    assert sum(run.outcome == "due" for run in made.runs) <= 1
    assert made.next_run_at is not None
    assert made.next_run_at > when + late
    assert all(when <= run.planned_at <= when + late for run in made.runs)
