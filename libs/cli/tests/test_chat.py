from __future__ import annotations

import pytest

from popagent_cli import following
from popagent_kit import json
from popagent_uistream import chunks as c
from popagent_uistream.reducer import client_view

from .conftest import Peer, Run

# Cut within the first text, between tool and text, and within the later text.
CUTS = [1, 4, 7, 8, 10, 12, 13, 14, 16, 17]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "FIRST_PAUSE_S", 0.01)


def tool_answer() -> list[c.Chunk]:
    return [
        c.start(message_id="a1", message_metadata={"turnId": "t"}),
        c.start_step(),
        c.reasoning_start("r"),
        c.reasoning_delta("r", "Let me look."),
        c.reasoning_end("r"),
        c.text_start("0"),
        c.text_delta("0", "I read "),
        c.text_delta("0", "the file."),
        c.text_end("0"),
        c.tool_input_start("1", "read"),
        c.tool_input_available("1", "read", {"path": "README.md"}),
        c.tool_output_available("1", "x" * 1_234),
        c.finish_step(),
        c.start_step(),
        c.text_start("x"),
        c.text_delta("x", "It is "),
        c.text_delta("x", "a house "),
        c.text_delta("x", "of agents."),
        c.text_end("x"),
        c.finish_step(),
        c.finish(finish_reason="stop"),
    ]


WHOLE = "I read the file.\nIt is a house of agents.\n"


def test_the_answer_goes_to_standard_output_and_what_was_done_for_it_to_standard_error(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()

    result = run("chat", "What", "is", "this?")

    asked = peer.asked[-1]
    assert result.exit_code == 0
    assert result.stdout == WHOLE
    assert result.stderr == "· read README.md  1.2 kB\n"
    assert asked.body["message"]["parts"] == [{"type": "text", "text": "What is this?"}]
    assert asked.body["message"]["role"] == "user"
    assert set(asked.body) == {"id", "message"}


def test_reasoning_is_shown_when_asked_for(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()

    result = run("chat", "Hi", "--reasoning")

    assert result.stdout == WHOLE
    assert result.stderr == "Let me look.\n· read README.md  1.2 kB\n"


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("behind", [0, 5])
def test_a_cut_line_is_taken_up_again_without_repeating_text(peer: Peer, run: Run, cut: int, behind: int) -> None:
    peer.script.chunks = tool_answer()
    peer.script.cuts = [cut, cut + 2]
    peer.script.snapshot_behind = behind

    result = run("chat", "Hi")

    assert (result.stdout, result.exit_code) == (WHOLE, 0)
    assert result.stderr == "· read README.md  1.2 kB\n"
    assert [asked.verb for asked in peer.asked] == ["chat", "watch", "watch"]


def test_an_interruption_that_the_server_announces_is_taken_up_again(peer: Peer, run: Run) -> None:
    whole = tool_answer()
    announced = [c.data("connection", {"resumable": True}, transient=True), c.error("The server is restarting.")]
    peer.script.chunks = [*whole[:15], *closing(), *announced]
    peer.answers["watch"] = lambda _: _resumed(peer, whole)

    result = run("chat", "Hi")

    assert (result.stdout, result.exit_code) == (WHOLE, 0)
    assert "restarting" not in result.stderr


def closing() -> list[c.Chunk]:
    return [c.text_end("x"), c.finish_step()]


def _resumed(peer: Peer, whole: list[c.Chunk]) -> None:
    peer.script.chunks = whole
    peer.script.seen = 15


def test_a_turn_that_ended_while_the_line_was_cut_is_completed_from_the_session(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()
    peer.script.cuts = [16]
    peer.script.over_when_cut = True
    stored = client_view(peer.script.message())
    peer.answers["sessions show"] = {"messages": [stored], "previousCursor": None}

    result = run("chat", "Hi")

    assert (result.stdout, result.exit_code) == (WHOLE, 0)


def test_a_question_whose_reply_was_lost_is_sent_again_under_the_same_key(peer: Peer, run: Run, lossy_url: str) -> None:
    peer.script.chunks = tool_answer()

    result = run("chat", "Hi", "--url", lossy_url)

    assert result.stdout == WHOLE
    first, second = peer.asked
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_a_failed_answer_keeps_its_text_and_says_why_on_standard_error(peer: Peer, run: Run) -> None:
    peer.script.chunks = [
        *tool_answer()[:9],
        c.finish_step(),
        c.error("The model does not answer. Is Ollama running?"),
    ]

    result = run("chat", "Hi")

    assert result.exit_code == 1
    assert result.stdout == "I read the file.\n"
    assert result.stderr == "Error: The model does not answer. Is Ollama running?\n"


def test_what_a_model_writes_cannot_move_the_terminal(peer: Peer, run: Run) -> None:
    pieces = ("safe \x1b", "[31", "mred\x1b]8;;http://evil", "\x1b\\link\x9b2J\r", "\nend")
    peer.script.chunks = [
        c.start(message_id="a1"),
        c.start_step(),
        c.tool_input_available("1", "read\x1b]0;owned\x07", {"path": "\x1b[2Ja\rb\u202egpj"}),
        c.tool_output_available("1", ""),
        c.text_start("x"),
        *(c.text_delta("x", piece) for piece in pieces),
        c.text_end("x"),
        c.finish_step(),
        c.finish(),
    ]

    result = run("chat", "Hi")

    assert result.stdout == "safe redlink\nend\n"
    assert result.stderr == "· read a bgpj  0 B\n"


def test_json_prints_the_final_message_alone(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()
    peer.script.cuts = [14]

    result = run("chat", "Hi", "--json")

    message = json.loads(result.stdout)
    session = peer.asked[0].body["id"]
    assert message == {**client_view(peer.script.message()), "sessionId": session}
    assert result.stderr == ""


def test_json_stream_prints_a_chunk_a_line(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()

    result = run("chat", "Hi", "--json-stream")

    assert [json.loads(line) for line in result.stdout.splitlines()] == peer.script.chunks


@pytest.mark.parametrize("words", [["-"], []])
def test_a_message_can_be_piped_in(peer: Peer, run: Run, words: list[str]) -> None:
    peer.script.chunks = tool_answer()

    run("chat", *words, stdin="Sum this up:\n\nA text.\n")

    assert peer.asked[-1].body["message"]["parts"][0]["text"] == "Sum this up:\n\nA text.\n"


def test_an_empty_message_is_not_sent(peer: Peer, run: Run) -> None:
    result = run("chat", stdin=" \n")

    assert result.exit_code == 2
    assert "The message is empty." in result.stderr
    assert not peer.asked


def test_workspace_by_name_model_and_session_travel_with_the_question(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()
    row = {"id": "w1", "name": "House", "path": "house", "isDefault": True}
    peer.answers["workspace list"] = {"items": [row], "nextCursor": None}

    run("chat", "Hi", "--session", "s1", "--workspace", "house", "--model", "qwen")

    body = peer.asked[-1].body
    assert (body["id"], body["workspaceId"], body["model"]) == ("s1", "w1", "qwen")


def test_an_unknown_session_or_workspace_is_told_before_anything_is_asked(peer: Peer, run: Run) -> None:
    peer.answers["sessions show"] = ({"error": "There is nothing with this id.", "code": "not_found"}, 404)

    session = run("chat", "Hi", "--session", "s9")
    workspace = run("chat", "Hi", "--workspace", "nowhere")

    assert session.stderr == "Error: There is no session s9. `popagent sessions list` shows them.\n"
    assert "There is no workspace 'nowhere'. There are: example." in workspace.stderr
    assert (session.exit_code, workspace.exit_code) == (1, 1)
    assert "chat" not in [asked.verb for asked in peer.asked]


def test_continue_goes_on_in_the_newest_session(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()

    result = run("chat", "--continue", "And", "now?")

    assert peer.asked[-1].body["id"] == "example"
    assert "going on with “example”" in result.stderr


def test_a_running_turn_is_told_with_what_to_do(peer: Peer, run: Run) -> None:
    peer.answers["chat"] = ({"error": "A turn is running.", "code": "turn_running"}, 409)

    result = run("chat", "Hi", "--session", "s1")

    assert result.exit_code == 1
    assert "popagent watch s1" in result.stderr
    assert "popagent stop s1" in result.stderr


def test_a_busy_server_is_asked_again(peer: Peer, run: Run) -> None:
    peer.script.chunks = tool_answer()
    busy = [({"error": "The server is restarting.", "code": "unavailable"}, 503, {"retry-after": "1"})]
    peer.answers["chat"] = lambda _: busy.pop() if busy else None

    result = run("chat", "Hi")

    assert (result.stdout, result.exit_code) == (WHOLE, 0)


def test_a_line_that_does_not_come_back_is_given_up(peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE_S", 0.2)
    peer.script.chunks = tool_answer()
    peer.script.cuts = [16]
    peer.answers["watch"] = ({"error": "A part does not answer.", "code": "unavailable"}, 503)

    result = run("chat", "Hi", "--session", "s1")

    assert result.exit_code == 1
    assert result.stdout == "I read the file.\nIt is \n"
    assert "popagent watch s1" in result.stderr


def test_watching_a_session_in_which_nothing_runs_says_so(peer: Peer, run: Run) -> None:
    result = run("watch", "s1")

    assert result.exit_code == 0
    assert result.stdout == ""
    assert "Nothing is being written in this session." in result.stderr


def test_stopping_nothing_is_a_failure_in_words(peer: Peer, run: Run) -> None:
    peer.answers["stop"] = ({"error": "There is nothing with this id.", "code": "not_found"}, 404)

    result = run("stop", "s1")

    assert (result.exit_code, result.stderr) == (1, "Error: Nothing is being written in this session.\n")
