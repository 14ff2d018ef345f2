from __future__ import annotations

from typing import Any

import pytest
from starlette.responses import StreamingResponse

from popagent_cli import events as following_events
from popagent_kit import json

from .conftest import Peer, Run, view


def message(message_id: str, body: str, **more: Any) -> dict[str, Any]:
    plain = {"threadId": None, "run": None, "editedAt": None, "deletedAt": None, "taskId": None}
    return {**view("ChannelMessage"), **plain, "id": message_id, "body": body, "authorName": "User", **more}


def test_a_post_says_that_it_started_a_task(peer: Peer, run: Run) -> None:
    peer.answers["workspace list"] = {
        "items": [{**view("WorkspaceView"), "id": "w1", "name": "Marsh"}],
        "nextCursor": None,
    }
    started = {"taskId": "m1", "agentId": None, "state": "waiting", "note": ""}
    peer.answers["channel-post"] = message("m1", "@researcher hi", run=started)

    plain = run("channel-post", "-", "--thread", "m0", "--workspace", "marsh", stdin="@researcher hi")
    body = peer.asked[-1].body
    peer.answers["channel-post"] = message("m2", "hi")

    assert plain.output.startswith("m1\n")
    assert "channel-tail --follow" in plain.output
    assert body == {"body": "@researcher hi", "threadId": "m0", "workspaceId": "w1"}
    assert run("channel-post", "hi").output == "m2\n"
    assert peer.asked[-1].path == "/api/channels/general/messages"


def test_a_channel_is_followed_from_where_its_history_ends_over_cuts(
    peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following_events, "AGAIN_S", 0.01)
    peer.answers["channel-tail"] = {"items": [message("m1", "one")], "previousSeq": None, "revision": 4}
    told = iter(
        [[(5, message("m2", "two"))], [(6, message("m1", "one", run=RUN)), (7, message("m2", "", deletedAt="x"))]]
    )

    def stream(_: object) -> Any:
        events = next(told, None)
        if events is None:
            return {"error": "No.", "code": "x"}, 401
        said = [f"event: message\nid: {place}\ndata: {json.dumps(what).decode()}\n\n" for place, what in events]
        return StreamingResponse(iter(said), headers={"content-type": "text/event-stream"})

    peer.answers["channel-tail --follow"] = stream

    result = run("channel-tail", "--follow")

    places = [asked.headers["last-event-id"] for asked in peer.asked if asked.path.endswith("/events")]
    assert places == ["4", "5", "7"]
    assert result.output.count("one\n") == 1
    assert "task failed: No agent." in result.output
    assert "two\n" in result.output
    assert "(deleted)" in result.output


RUN = {"taskId": "m1", "agentId": None, "state": "failed", "note": "No agent."}


def test_what_is_written_cannot_move_the_terminal(peer: Peer, run: Run) -> None:
    written = message("m1", "a\x1b[2Jb", authorName="c\x1b[2Jd")
    peer.answers["channel-tail"] = {"items": [written], "previousSeq": None, "revision": 1}

    assert "\x1b" not in run("channel-tail").output


def test_reading_and_settings_are_told_in_words(peer: Peer, run: Run) -> None:
    channel = {**view("ChannelView"), "id": "general", "title": "#general", "lastSeq": 12, "unread": 3}
    peer.answers["channel-list"] = {"items": [channel], "nextCursor": None}
    peer.answers["channel-read"] = {**channel, "unread": 0}
    settings = {"autoReply": True, "agentId": None, "revision": 1, "updatedAt": "2026-01-01T00:00:00Z"}
    peer.answers["channel-settings"] = {**settings, "autoReply": False}
    peer.answers["channel-settings --auto-reply"] = settings

    assert "#general" in run("channel-list").output
    assert run("channel-read").output == "0 unread\n"
    assert peer.asked[-1].body == {"seq": 12}
    assert "not answered" in run("channel-settings").output
    assert "the orchestrator" in run("channel-settings", "--auto-reply", "--agent", "orchistrator").output
    assert peer.asked[-1].body == {"autoReply": True, "agentId": "orchistrator"}


def test_a_link_to_a_task_is_told_as_its_title_and_id(peer: Peer, run: Run) -> None:
    said = message("m1", "Seven.\n\n[Task: Count \\[all\\] herons](/tasks/t-1)\n\n[a page](/tasks)")
    peer.answers["channel-tail"] = {"items": [said], "previousSeq": None, "revision": 1}

    assert "Seven.\n\nTask: Count [all] herons (t-1)\n\n[a page](/tasks)\n" in run("channel-tail").output


def test_a_post_to_nobody_says_who_there_is(peer: Peer, run: Run) -> None:
    agent = view("AgentView", delegable=True)
    agents = [{**agent, "id": "researcher"}, {**agent, "id": "watcher", "delegable": False}]
    agents.append({**agent, "id": "orchistrator", "delegable": False})
    peer.answers["agents"] = {"items": agents, "tools": [], "nextCursor": None}
    peer.answers["channel-post"] = lambda asked: message("m1", asked.body["body"], mentions=[])

    nobody = run("channel-post", "@nobody hi")
    as_json = run("channel-post", "@nobody hi", "--json")
    before = len(peer.asked)
    quoted = run("channel-post", "`@nobody` and me@example.org")

    assert nobody.stdout == "m1\n"
    assert nobody.stderr == "Nobody who can be asked is called @nobody. There are: @researcher, @orchistrator.\n"
    assert (as_json.stderr, quoted.stderr) == ("", "")
    assert len(peer.asked) == before + 1
