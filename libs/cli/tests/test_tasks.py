from __future__ import annotations

from typing import Any

import pytest

from popagent_cli import events as following_events
from popagent_cli import tasks

from .conftest import Peer, Run, told, view

TASK = view("TaskView", id="t1", title="Count the herons.", activity=[], previousCursor=None, revision=0)
WORKSPACES = {"items": [{**view("WorkspaceView"), "id": "w1", "name": "Marsh"}], "nextCursor": None}


def record(seq: int, revision: int, kind: str = "text", **more: Any) -> dict[str, Any]:
    plain = view("TranscriptPage")["records"][0]
    return {**plain, "seq": seq, "revision": revision, "kind": kind, "calls": [], "agentId": "researcher", **more}


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "LOOK_EVERY_S", 0.0)


def test_a_task_is_created_in_a_workspace_that_is_named_with_words_from_standard_input(peer: Peer, run: Run) -> None:
    peer.answers["workspace list"] = WORKSPACES
    peer.answers["task-create"] = TASK

    plain = run("task-create", "marsh", "Count.")
    first = peer.asked[-1].body
    run("task-create", "w1", "-", "big-model", "--priority", "3", "--max-attempts", "1", stdin="Count\nthem.\n")

    assert plain.output.startswith("t1\n")
    assert "task-show t1 --follow" in plain.output
    assert first == {"prompt": "Count.", "workspaceId": "w1"}
    assert peer.asked[-1].body == {
        "prompt": "Count\nthem.\n",
        "workspaceId": "w1",
        "model": "big-model",
        "priority": 3,
        "maxAttempts": 1,
    }


def test_a_list_shows_what_is_wrong_and_asks_for_what_was_named(peer: Peer, run: Run) -> None:
    peer.answers["workspace list"] = WORKSPACES
    row = {**TASK, "state": "failed", "lastErrorClass": "timeout", "attemptCount": 1, "maxAttempts": 3}
    peer.answers["task-list"] = {"items": [row, {**TASK, "interruptedAt": TASK["createdAt"]}], "nextCursor": None}

    shown = run("task-list", "--state", "failed", "--workspace", "Marsh", "--search", "heron")
    query = peer.asked[-1].query
    peer.answers["task-list"] = {"items": [], "nextCursor": None}

    assert "1 of 3" in shown.output
    assert "timeout" in shown.output
    assert "does not end" in shown.output
    assert (query["state"], query["workspaceId"], query["q"]) == ("failed", "w1", "heron")
    assert "task-create" in run("task-list").output
    assert "no such task" in run("task-list", "--search", "x").output


def test_a_task_is_followed_to_its_end_and_words_that_grow_are_printed_once(peer: Peer, run: Run) -> None:
    views = iter([{**TASK, "state": "running", "revision": 7}, {**TASK, "output": "Seven."}])
    called = record(2, 9, "tool-call", calls=[CALL])
    peer.answers["task-show"] = lambda _: (next(views), 200)
    peer.answers["task-show --follow"] = lambda _: told(
        ("ready", 7, {"taskId": "t1", "revision": 7}),
        ("task", 7, {**TASK, "state": "running"}),
        ("records", 8, {"after": 7, "revision": 8, "records": [record(1, 8, text="There are ")]}),
        ("records", 9, {"after": 8, "revision": 9, "records": [record(1, 9, text="There are seven."), called]}),
        ("task", 9, TASK),
    )

    result = run("task-show", "t1", "--follow")

    assert result.exit_code == 0, result.output
    assert [each.headers["last-event-id"] for each in peer.asked if each.path.endswith("/events")] == ["7"]
    assert "There are seven.\n" in result.output
    assert "completed read {'path': 'a'} → 7" in result.output
    assert result.output.rstrip().endswith("Seven.")


CALL = {
    "callId": "c",
    "tool": "read",
    "arguments": {"path": "a"},
    "result": "7",
    "error": None,
    "status": "completed",
}


def test_a_task_is_followed_while_the_door_is_restarted(peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_events, "AGAIN_S", 0.01)
    busy = ({"error": "Not now.", "code": "unavailable"}, 503)
    views = iter([({**TASK, "state": "running"}, 200), busy, (TASK, 200)])
    streams = iter(
        [
            told(("records", 4, {"after": 0, "revision": 4, "records": [record(1, 4, text="One")]})),
            busy,
            told(("records", 5, {"after": 4, "revision": 5, "records": [record(1, 5, text="One two")]})),
            told(("task", 5, TASK)),
        ]
    )
    peer.answers["task-show"] = lambda _: next(views)
    peer.answers["task-show --follow"] = lambda _: next(streams)

    result = run("task-show", "t1", "--follow")

    assert result.exit_code == 0, result.output
    assert [each.headers["last-event-id"] for each in peer.asked if each.path.endswith("/events")] == list("0445")
    assert "One two\n" in result.stdout
    assert next(views, None) is next(streams, None) is None


def test_a_task_that_is_deleted_while_it_is_followed_is_said_to_be(peer: Peer, run: Run) -> None:
    peer.answers["task-show"] = {**TASK, "state": "running"}
    peer.answers["task-show --follow"] = lambda _: told(("deleted", 0, {"taskId": "t1", "revision": 0}))

    result = run("task-show", "t1", "--follow")

    assert result.exit_code == 1
    assert "The task was deleted." in result.stderr


def test_a_long_transcript_is_shown_whole_when_it_is_asked_for(peer: Peer, run: Run) -> None:
    pages = {
        "9": {"records": [record(5, 5, text="two ")], "previousCursor": 5, "revision": 9},
        "5": {"records": [record(1, 1, text="one ")], "previousCursor": None, "revision": 9},
    }
    peer.answers["task-show"] = {**TASK, "activity": [record(9, 9, text="three")], "previousCursor": 9}
    peer.answers["task-show --all"] = lambda asked: ({"taskId": "t1", **pages[asked.query["before"]]}, 200)

    assert "older records are not shown" in run("task-show", "t1").stderr
    assert "one \ntwo \nthree" in run("task-show", "t1", "--all").output


def test_a_failed_task_says_why_and_a_follower_exits_with_1(peer: Peer, run: Run) -> None:
    lost = {"state": "dead-letter", "lastErrorClass": "runner-lost", "lastError": "Gone.", "explanation": "Spent."}
    peer.answers["task-show"] = {**TASK, **lost}
    peer.answers["task-show --follow"] = lambda _: told(("task", 0, {**TASK, **lost}))

    shown, followed = run("task-show", "t1"), run("task-show", "t1", "--follow")

    assert "dead-letter (runner-lost): Gone.\nSpent." in shown.output
    assert [shown.exit_code, followed.exit_code] == [0, 1]


def test_what_a_task_says_cannot_move_the_terminal(peer: Peer, run: Run) -> None:
    peer.answers["task-show"] = {
        **TASK,
        "title": "a\x1b[2Jb",
        "output": "c\x1b[2Jd",
        "activity": [record(1, 1, text="e\x1b[2Jf"), record(2, 2, "status", text="g\x1b[2Jh")],
    }

    assert "\x1b" not in run("task-show", "t1").output


def test_a_task_is_cancelled_resolved_and_deleted(peer: Peer, run: Run) -> None:
    peer.answers["task-cancel"] = {**TASK, "state": "cancelling"}
    peer.answers["task-resolve"] = TASK

    assert "t1 is cancelling" in run("task-cancel", "t1").output
    assert "t1 is completed" in run("task-resolve", "t1", "I saw it.").output
    assert peer.asked[-1].body == {"evidence": "I saw it."}
    peer.answers["task-retry"] = {**TASK, "state": "queued"}
    assert "t1 is queued" in run("task-retry", "t1").output
    assert "t1 is deleted" in run("task-delete", "t1", "--yes").output


def test_a_task_that_is_not_there_is_told_with_what_lists_them(peer: Peer, run: Run) -> None:
    gone = ({"error": "There is no task with this id.", "code": "not_found"}, 404)
    peer.answers |= {"task-show": gone, "task-cancel": gone}

    results = [run("task-show", "nope"), run("task-cancel", "nope")]

    assert [each.exit_code for each in results] == [1, 1]
    assert all("There is no task with this id. `popagent task-list` lists them." in each.stderr for each in results)


def test_a_call_that_has_returned_is_shown_once_and_the_workspace_by_its_name(peer: Peer, run: Run) -> None:
    begun = {**CALL, "result": None, "status": "running"}
    waiting = {**begun, "callId": "d", "tool": "shell"}
    records = [
        record(1, 1, "tool-call", calls=[begun]),
        record(2, 2, "tool-call", calls=[waiting]),
        record(3, 3, "tool-call", calls=[CALL]),
        record(4, 4, "step", calls=[CALL]),
    ]
    peer.answers["task-show"] = {**TASK, "workspaceId": "w1", "activity": records}
    peer.answers["workspace list"] = WORKSPACES

    shown = run("task-show", "t1").output

    assert [line.split()[:2] for line in shown.splitlines() if "path" in line] == [
        ["completed", "read"],
        ["running", "shell"],
    ]
    assert "workspace    Marsh\n" in shown
