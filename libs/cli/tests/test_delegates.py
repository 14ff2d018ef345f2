from __future__ import annotations

from io import StringIO
from typing import Any

import pytest

from popagent_cli.rendering import Rendering
from popagent_cli.screen import Screen
from popagent_uistream import chunks as c
from popagent_uistream.chunks import Chunk

from .conftest import Peer, Run

TASK = "Read the wind notes,\nthen report."
BEGUN = {
    "agentId": "reviewer",
    "agentName": "Reviewer",
    "task": TASK,
    "maxSteps": 32,
    "state": "running",
    "steps": 0,
}
READS = {"step": 1, "kind": "call", "tool": "read", "input": '{"path":"README.md"}', "state": "running"}
ENDED = {"state": "completed", "durationMs": 4_100, "usage": {"inputTokens": 1_200, "outputTokens": 34}}
BEGINS = "· Reviewer begins: Read the wind notes, then report.\n"
ENDS = "· Reviewer done  2 steps, 1,234 tokens, 4.1 s\n"


def told(data: dict[str, Any], call_id: str = "1") -> Chunk:
    return c.data("agentActivity", data, data_id=call_id, transient=True)


def delegation() -> list[Chunk]:
    return [
        c.start(message_id="a1"),
        c.start_step(),
        c.tool_input_available("1", "agent-reviewer", {"prompt": TASK}),
        told(BEGUN),
        told({"steps": 1}),
        told({"entries": {"1": READS}}),
        told({"entries": {"1": {"state": "done"}}}),
        told({"steps": 2}),
        told(ENDED),
        c.tool_output_available("1", "They are right."),
        c.finish_step(),
    ]


ANSWER = [
    c.start_step(),
    c.text_start("x"),
    c.text_delta("x", "All is well."),
    c.text_end("x"),
    c.finish_step(),
    c.finish(),
]


def test_who_was_woken_by_a_letter_has_its_lines_and_names_who_asked() -> None:
    err = StringIO()
    rendering = Rendering(Screen(StringIO(), err))
    letter = {"operation": "send", "to": "reviewer", "message": "Is it right?"}
    woken = {**BEGUN, "task": "Is it right?", "askedBy": "researcher"}
    rendering.begin()
    for chunk in [
        c.start(message_id="a1"),
        c.start_step(),
        c.tool_input_available("1", "agentCommunication", letter),
        c.tool_output_available("1", "letter-1: reviewer was woken by it."),
        c.finish_step(),
        told(woken),
        told({"steps": 2}),
        told(ENDED),
        *ANSWER,
    ]:
        rendering.take(chunk)

    assert err.getvalue().endswith(f"· Reviewer begins, asked by researcher: Is it right?\n{ENDS}")


def test_a_specialist_has_a_line_when_it_begins_and_one_when_it_ends(peer: Peer, run: Run) -> None:
    peer.script.chunks = [*delegation(), *ANSWER]

    result = run("chat", "Hi")

    assert result.stdout == "All is well.\n"
    assert result.stderr == BEGINS + ENDS


@pytest.mark.parametrize(("state", "word"), [("failed", "failed"), ("stopped", "stopped")])
def test_a_specialist_that_gave_no_result_says_so_once(peer: Peer, run: Run, state: str, word: str) -> None:
    whole = delegation()
    whole[-3:-1] = [told({"state": state}), c.tool_output_error("1", "The specialist gave no result.")]
    peer.script.chunks = [*whole, *ANSWER]

    result = run("chat", "Hi")

    assert result.stderr == BEGINS + f"· Reviewer {word}  2 steps\n"


def test_a_delegation_of_which_nothing_was_told_is_a_call_like_any_other(peer: Peer, run: Run) -> None:
    untold = [chunk for chunk in delegation() if chunk["type"] != "data-agentActivity"]
    peer.script.chunks = [*untold, *ANSWER]

    result = run("chat", "Hi")

    assert result.stderr == "· agent-reviewer Read the wind notes, then report.  15 B\n"


def test_what_is_told_again_after_a_cut_is_not_shown_again() -> None:
    err = StringIO()
    rendering = Rendering(Screen(StringIO(), err))
    whole = delegation()

    for chunks in (whole[:6], whole, [*whole[:3], c.data("agentActivity", BEGUN | ENDED | {"steps": 2}, data_id="1")]):
        rendering.begin()
        for chunk in chunks:
            rendering.take(chunk)

    assert err.getvalue() == BEGINS + ENDS


def test_what_a_specialist_does_now_is_what_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(StringIO(), StringIO())
    labels: list[str] = []
    monkeypatch.setattr(screen, "waiting", labels.append)
    rendering = Rendering(screen)

    for chunk in delegation():
        rendering.take(chunk)

    assert [label for label in labels if label.startswith("Reviewer")] == [
        "Reviewer: step 1 of 32",
        "Reviewer: step 1 of 32",
        "Reviewer: read",
        "Reviewer: step 1 of 32",
        "Reviewer: step 2 of 32",
        "Reviewer: step 2 of 32",
    ]


def test_the_name_and_task_of_a_specialist_cannot_move_the_terminal(peer: Peer, run: Run) -> None:
    whole = delegation()
    whole[3] = told(BEGUN | {"agentName": "Re\x1b[2Jviewer", "task": "\x1b]0;owned\x07Look\rhere"})
    peer.script.chunks = [*whole, *ANSWER]

    result = run("chat", "Hi")

    assert result.stderr.startswith("· Reviewer begins: Look here\n")


SENTENCE = (
    "The hook “Docs only” refused this: Only files below docs/ may be changed, and not by commands, whoever asks."
)


def test_a_refused_call_of_a_specialist_is_one_line_with_its_reason() -> None:
    err = StringIO()
    rendering = Rendering(Screen(StringIO(), err))
    refused = {"state": "failed", "refusal": SENTENCE.replace("refused", "re\x1b[2Jfused")}
    whole = delegation()
    whole[6:7] = [told({"entries": {"1": refused}}), told({"entries": {"2": {**READS, "state": "failed"}}})]

    for chunks in (whole[:8], whole):
        rendering.begin()
        for chunk in chunks:
            rendering.take(chunk)

    assert err.getvalue() == f'{BEGINS}· Reviewer: read {{"path":"README.md"}}  {SENTENCE}\n{ENDS}'


def test_what_a_hook_refused_the_agent_itself_is_said_to_its_end(peer: Peer, run: Run) -> None:
    call = c.tool_input_available("1", "write", {"path": "README.md"})
    refusal = c.tool_output_error("1", SENTENCE, tool_metadata={"refused": True})
    peer.script.chunks = [c.start(message_id="a1"), c.start_step(), call, refusal, c.finish_step(), *ANSWER]

    result = run("chat", "Hi")

    assert result.stderr == f"· write README.md  {SENTENCE}\n"
