from __future__ import annotations

from .conftest import Peer, Run, view

SCHEDULE = {**view("ScheduleView", id="c1", revision=3, enabled=True, nextRunAt=None), "name": "Nightly\x1b[2J"}


def test_a_schedule_is_made_of_what_was_said(peer: Peer, run: Run) -> None:
    peer.answers["schedule-create"] = SCHEDULE

    plain = run("schedule-create", "Nightly", "@daily", "Count.")
    first = peer.asked[-1].body
    run(
        "schedule-create", "Nightly", "@daily", "Count.", "--overlap", "--paused", "--catch-up", "0", "--agent", "scout"
    )

    assert plain.output.startswith("Nightly is made: c1\n")
    assert "it is paused" in plain.output
    assert first == {"name": "Nightly", "cron": "@daily", "prompt": "Count."}
    more = {"skipIfRunning": False, "enabled": False, "catchUpMinutes": 0, "agentId": "scout"}
    assert peer.asked[-1].body == {**first, **more}


def test_a_change_is_sent_with_the_stored_revision_and_told(peer: Peer, run: Run) -> None:
    peer.answers["schedule-list"] = {"items": [SCHEDULE], "nextCursor": None, "timezone": "UTC"}
    peer.answers["schedule-patch"] = {**SCHEDULE, "cron": "@weekly", "revision": 4}

    changed = run("schedule-patch", "c1", '{"cron":"@weekly"}')
    whole = run("schedule-patch", "c1", '{"cron":"@weekly"}', "--json")
    unknown = run("schedule-pause", "c2")

    assert peer.asked[1].body == {"revision": 3, "cron": "@weekly"}
    assert "→ @weekly" in changed.output
    assert '"revision":4' in whole.output
    assert (unknown.exit_code, "There is no schedule c2" in unknown.output) == (1, True)
    assert [asked.verb for asked in peer.asked].count("schedule-patch") == 2


def test_a_schedule_rests_and_goes_on(peer: Peer, run: Run) -> None:
    peer.answers["schedule-list"] = {"items": [SCHEDULE], "nextCursor": None, "timezone": "UTC"}
    peer.answers["schedule-patch"] = {**SCHEDULE, "nextRunAt": "2026-01-02T03:04:05Z"}

    rests, sent = run("schedule-pause", "c1"), peer.asked[-1].body
    goes_on = run("schedule-resume", "c1")

    assert (rests.output, sent) == ("Nightly rests\n", {"revision": 3, "enabled": False})
    assert goes_on.output.startswith("Nightly goes on, next 2026-01-0")
    assert peer.asked[-1].body == {"revision": 3, "enabled": True}


def test_a_schedule_is_named_or_those_there_are_are_told(peer: Peer, run: Run) -> None:
    named = {**SCHEDULE, "name": "Morning"}
    twins = [{**SCHEDULE, "name": "Twin", "id": each} for each in ("c2", "c3")]
    peer.answers["schedule-list"] = {"items": [named, *twins], "nextCursor": None, "timezone": "UTC"}
    peer.answers["schedule-history"] = {"items": [], "nextCursor": None}

    by_name = run("schedule-history", "morning")
    asked = peer.asked[-1].path
    unknown = run("schedule-history", "Evening")
    several = run("schedule-delete", "twin")

    assert (by_name.exit_code, asked) == (0, "/api/schedules/c1/runs")
    assert "There is no schedule Evening. There are: Morning, Twin, Twin." in unknown.stderr
    assert "schedule-list" in unknown.stderr
    assert "c2, c3" in several.stderr
    assert [unknown.exit_code, several.exit_code] == [1, 1]
    assert {each.method for each in peer.asked} == {"GET"}
