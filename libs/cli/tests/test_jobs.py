"""What takes longer than a request is followed to its end, by what it tells of itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.responses import StreamingResponse

from .conftest import Peer, Run, view


def job(state: str = "running", progress: float = 0.0, note: str = "", **more: Any) -> dict[str, Any]:
    more = {"id": "chat_1", "about": "w1", "title": "Clone into house", "error": None, "result": None, **more}
    return view("JobView", state=state, progress=progress, note=note, **more)


def telling(*jobs: dict[str, Any]) -> StreamingResponse:
    """Events of these jobs, after which the connection breaks."""
    texts = ["event: ready\nid: a-1\ndata: {}\n\n"]
    texts += [
        "event: jobs\nid: a-2\ndata: " + json.dumps({"name": "jobs-changed", "event": {"job": each}}) + "\n\n"
        for each in jobs
    ]
    return StreamingResponse(iter([text.encode() for text in texts]), headers={"content-type": "text/event-stream"})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_cli.jobs.AGAIN_S", 0.01)


def test_a_url_is_cloned_by_the_server_and_followed(peer: Peer, run: Run) -> None:
    row = {**view("WorkspaceList")["items"][0], "id": "w1", "name": "The house"}
    peer.answers["workspace list"] = {"items": [row], "nextCursor": None, "root": "/elsewhere"}
    peer.answers["workspace add"] = (job("queued"), 202)
    peer.answers["job-show"] = job(progress=0.1, note="Connecting")
    peer.answers["events"] = lambda _: telling(
        job(progress=0.9, note="Another", id="chat_2"), job(progress=0.5, note="Receiving: 50 %"), job("completed", 1.0)
    )

    result = run("workspace", "add", "https://example.org/house.git", "--name", "The house", "--folder", "home")

    assert result.exit_code == 0, result.stderr
    sent = next(each for each in peer.asked if each.verb == "workspace add")
    assert sent.body == {"url": "https://example.org/house.git", "name": "The house", "directory": "home"}
    assert "The house is registered" in result.stdout
    assert [line.strip() for line in result.stderr.splitlines()] == ["10%  Connecting", "50%  Receiving: 50 %"]


def test_without_waiting_the_job_is_named(peer: Peer, run: Run) -> None:
    peer.answers["workspace add"] = (job("queued"), 202)

    result = run("workspace", "add", "git@example.org:house.git", "--no-wait")

    assert "popagent job-show chat_1 --follow" in result.stdout
    assert [each.verb for each in peer.asked] == ["workspace add"]


def test_a_job_that_fails_says_why(peer: Peer, run: Run) -> None:
    peer.answers["workspace add"] = (job("queued"), 202)
    peer.answers["job-show"] = job("failed", error="There is no repository\x1b[2J at this address.")
    peer.answers["events"] = lambda _: telling()

    result = run("workspace", "add", "https://example.org/house.git")

    assert result.exit_code == 1
    assert "There is no repository at this address." in result.stderr


def test_a_connection_that_breaks_is_taken_up_again(peer: Peer, run: Run) -> None:
    states = iter([job(), job(progress=0.2, note="two"), job("completed", 1.0, result={"deleted": 3, "kept": []})])
    peer.answers["job-show"] = lambda _: next(states)
    refused = ({"error": "Not now.", "code": "unavailable"}, 503)
    answers = iter([telling(), refused, telling()])
    peer.answers["events"] = lambda _: next(answers)

    result = run("job-show", "chat_1", "--follow", "--json")

    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["result"] == {"deleted": 3, "kept": []}
    assert [each.verb for each in peer.asked].count("events") == 3


def test_all_chats_of_a_workspace_are_deleted_and_those_kept_are_told(peer: Peer, run: Run) -> None:
    kept = [{"id": "s9", "title": "Busy", "reason": "A turn is running."}]
    peer.answers["workspace delete-sessions"] = (job("queued"), 202)
    peer.answers["job-show"] = job("completed", 1.0, result={"deleted": 1_200, "keptCount": 1, "kept": kept})
    peer.answers["events"] = lambda _: telling()

    unasked = run("workspace", "delete-sessions", "example")
    before = [each.verb for each in peer.asked]
    result = run("workspace", "delete-sessions", "example", "--yes")

    assert (unasked.exit_code, before) == (1, ["workspace list"])
    assert result.stdout == "1,200 chats are deleted\n"
    assert "s9 was kept: A turn is running." in result.stderr


def test_a_long_chat_is_deleted_by_a_job(peer: Peer, run: Run) -> None:
    peer.answers["sessions delete"] = (job("queued", about="s1"), 202)
    peer.answers["job-show"] = job("completed", 1.0)
    peer.answers["events"] = lambda _: telling()

    result = run("sessions", "delete", "s1")

    assert result.stdout == "s1 is deleted\n"


def test_jobs_are_listed(peer: Peer, run: Run) -> None:
    peer.answers["jobs"] = {"items": [job(progress=0.456)], "nextCursor": None}

    result = run("jobs")

    assert "chat_1" in result.stdout
    assert "46%" in result.stdout
    assert "Clone into house" in result.stdout


@pytest.mark.parametrize("url", ["https://ada:hunter22@example.org/p.git", "file:///etc", "ext::sh -c date"])
def test_a_hostile_address_is_refused_before_anything_is_asked(url: str, peer: Peer, run: Run) -> None:
    result = run("workspace", "add", url)
    folder = run("workspace", "add", "default", "--directory", "home")

    assert (result.exit_code, folder.exit_code) == (1, 1)
    assert "hunter22" not in result.output + result.stderr
    assert peer.asked == []
