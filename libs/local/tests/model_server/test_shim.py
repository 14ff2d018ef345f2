"""What the model is asked for a request with tools."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from popagent_local.model_server import shim
from popagent_local.model_server.prompt import decision_messages
from popagent_local.model_server.reply import Reply, completion
from popagent_local.model_server.schema import decision_schema, narrow
from popagent_local.model_server.shim import BadRequestError, plan


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "description": f"Do {name}.", "parameters": parameters}}


READ = function("read", path={"type": "string", "description": "Below the workspace."}, line={"type": "integer"})
LIST = function("list")
USER = {"role": "user", "content": "What is this?"}


def tools_in(schema: dict[str, Any]) -> list[str]:
    branches = schema.get("anyOf", [schema])
    return [branch["properties"]["tool"]["const"] for branch in branches]


@pytest.mark.parametrize(
    ("choice", "branches"),
    [
        (None, ["read", "list", "none"]),
        ("auto", ["read", "list", "none"]),
        ("required", ["read", "list"]),
        ({"type": "function", "function": {"name": "list"}}, ["list"]),
    ],
)
def test_tool_choice_leaves_only_the_allowed_branches(choice: Any, branches: list[str]) -> None:
    planned = plan({"messages": [USER], "tools": [READ, LIST], "tool_choice": choice})

    assert planned.decision_schema is not None
    assert tools_in(planned.decision_schema) == branches
    assert (planned.answer is not None) == ("none" in branches)


def test_without_a_choice_there_is_nothing_to_decide() -> None:
    planned = plan({"messages": [USER], "tools": [READ, LIST], "tool_choice": "none"})

    assert planned.decision is None
    assert planned.answer is not None
    assert planned.answer["messages"][1]["content"] == "What is this?\n\nReply to me now, in Markdown, without JSON."


DECIDE = """

To answer: What is this?
If the results above say enough, write {"tool": "none"} now. Never repeat a call."""


def test_the_prompt_of_a_step_begins_with_that_of_the_step_before() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "README.md"}'}}
    first = [{"role": "system", "content": "Be brief."}, USER]
    second = [
        *first,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "It is a test."},
    ]
    third = [*second, {"role": "assistant", "content": "A test."}, {"role": "user", "content": "Thanks."}]

    plans = [plan({"messages": messages, "tools": [READ, LIST]}) for messages in (first, second, third)]
    last = plan({"messages": third, "tools": [READ, LIST], "tool_choice": "none"})

    prompts = [(planned.decision or {})["messages"] for planned in plans]
    answers = [(planned.answer or {})["messages"] for planned in [*plans, last]]
    for told, later in pairwise(prompts):
        # Only what is said at the very end, about this step alone, is not found again in the next.
        assert later[: len(told) - 1] == told[:-1]
        assert told[-1]["content"].startswith(later[len(told) - 1]["content"])
    for told, asked in zip([*prompts, prompts[2]], answers, strict=True):
        assert asked[:-1] == told[:-1]
        assert asked[-1]["content"].startswith(told[-1]["content"].partition("\n\nTo answer:")[0])
    demand = '\n\nI asked: "What is this?"\nAnswer me now in Markdown, without JSON.'
    assert answers[1][-1]["content"].endswith(demand)
    assert prompts[1][2:] == [
        {"role": "assistant", "content": '{"tool": "read", "arguments": {"path": "README.md"}}'},
        {"role": "user", "content": 'Result of read {"path": "README.md"}:\nIt is a test.' + DECIDE},
    ]
    assert prompts[2][4] == {"role": "assistant", "content": '{"tool": "none", "answer": "A test."}'}


@pytest.mark.parametrize(("words", "again"), [(12, True), (500, False)])
def test_what_is_said_beside_a_question_is_repeated_last_unless_it_is_long(words: int, again: bool) -> None:
    beside = f"<context>\n{'Be brief. ' * words}\n</context>"
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": f"{beside}\n\nWhat is this? Read it."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "It is a test."},
    ]

    planned = plan({"messages": messages, "tools": [READ, LIST]})

    answer, decision = ((one or {})["messages"][-1]["content"] for one in (planned.answer, planned.decision))
    demand = '\n\nI asked: "What is this? Read it."\nAnswer me now in Markdown, without JSON.'
    assert answer.endswith(f"{demand}\n{beside}" if again else demand)
    assert "\n\nTo answer: What is this? Read it.\n" in decision


def test_an_answer_ends_where_the_demand_is_written_down_again() -> None:
    planned = plan({"messages": [{"role": "user", "content": "What is this? Read it, all of it."}], "tools": [READ]})

    assert (planned.answer or {})["stop"] == [
        "Reply to me now, in Markdown",
        'I asked: "What is this? Read',
        "Answer me now in Markdown, w",
    ]


def test_tools_are_told_with_their_parameters() -> None:
    kinds = function(
        "find",
        what={"enum": ["file", "folder"]},
        names={"type": "array", "items": {"type": "string"}},
        limit={"anyOf": [{"type": "integer"}, {"type": "null"}]},
    )

    system = (plan({"messages": [USER], "tools": [READ, kinds]}).decision or {})["messages"][0]["content"]

    assert "Tool read(path: string, line?: integer): Do read.\n  path: Below the workspace." in system
    assert 'Tool find(what: "file" | "folder", names?: array of string, limit?: integer | null)' in system


def test_several_system_messages_and_parts_become_one_text() -> None:
    messages = [
        {"role": "system", "content": "One."},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}, {"type": "text", "text": "Three."}]},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
    ]

    planned = plan({"messages": messages})

    assert planned.is_plain
    assert (planned.answer or {})["messages"] == [
        {"role": "system", "content": "One.\n\nTwo.\nThree."},
        {"role": "user", "content": "Hello"},
    ]


def test_several_calls_of_one_step_are_told_one_after_the_other_with_their_results() -> None:
    calls = [{"id": f"c{n}", "function": {"name": "read", "arguments": f'{{"path": "{n}"}}'}} for n in (1, 2, 3)]
    messages = [
        USER,
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
    ]

    told = decision_messages(messages, [], "none")

    assert [message["content"].splitlines()[-1] for message in told[1:]] == [
        '{"tool": "none", "answer": "I look."}',
        '{"tool": "read", "arguments": {"path": "1"}}',
        "one",
        '{"tool": "read", "arguments": {"path": "2"}}',
        "two",
        '{"tool": "read", "arguments": {"path": "3"}}',
        "The call was not carried out.",
    ]


def test_results_without_tools_still_lead_to_an_answer() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "no json"}}
    messages = [
        USER,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
    ]

    planned = plan({"messages": messages})

    assert (planned.decision, planned.is_plain) == (None, False)
    assert (planned.answer or {})["messages"][-1]["role"] == "user"


def test_an_answer_is_over_where_the_model_writes_the_demand_down() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    looked = [USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}]

    for messages in ([USER], looked):
        answer = plan({"messages": messages, "tools": [READ]}).answer or {}
        demand = answer["messages"][-1]["content"].rpartition("\n\n")[2]
        assert [echo for echo in answer["stop"] if demand.startswith(echo)] != []


def test_a_tool_may_be_called_none() -> None:
    planned = plan({"messages": [USER], "tools": [function("none"), READ]})

    assert tools_in(planned.decision_schema or {}) == ["none", "read", "none_"]
    assert planned.no_tool == "none_"


def test_an_answer_has_the_format_asked_for_also_beside_tools() -> None:
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}

    beside = plan({"messages": [USER], "tools": [READ], "response_format": wanted})
    alone = plan({"messages": [USER], "response_format": wanted})

    assert beside.answer_schema is not None
    assert beside.answer_schema["properties"] == {"n": {"type": "integer"}}
    assert (beside.answer or {})["messages"][-1]["content"].endswith("as JSON: What is this?")
    assert (alone.answer or {})["response_format"] == wanted


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], None),
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls"),
        ({"messages": [USER], "n": 2}, "n"),
        ({"messages": [USER], "max_tokens": -1}, "max_tokens"),
        ({"messages": [USER], "max_tokens": "many"}, "max_tokens"),
        ({"messages": [USER], "tools": [{"type": "web"}]}, "tools[0]"),
        ({"messages": [USER], "tools": [function("a b")]}, "tools[0]"),
        ({"messages": [USER], "tools": [READ, READ]}, "tools"),
        ({"messages": [USER], "tool_choice": "required"}, "tool_choice"),
        ({"messages": [USER], "tools": [READ], "tool_choice": "perhaps"}, "tool_choice"),
        (
            {"messages": [USER], "tools": [READ], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice",
        ),
        ({"messages": [USER], "response_format": {"type": "xml"}}, "response_format"),
        ({"messages": [USER], "response_format": {"type": "json_schema"}}, "response_format"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_its_field(body: Any, field: str | None) -> None:
    with pytest.raises(BadRequestError) as refused:
        plan(body)

    assert refused.value.field == field
    assert refused.value.http_status == 400


def test_what_the_model_does_not_know_is_not_passed_on() -> None:
    body = {"messages": [USER], "user": "me", "store": True, "grammar": "root ::= x", "seed": 7, "top_p": 0.5}

    planned = plan(body)

    assert planned.answer is not None
    assert planned.answer["seed"] == 7
    assert not {"user", "store", "grammar"} & planned.answer.keys()
    assert planned.answer["max_tokens"] == shim.DEFAULT_MAX_TOKENS


def test_references_are_put_in_place_and_recursion_ends() -> None:
    tree = {
        "type": "object",
        "properties": {"child": {"$ref": "#/$defs/Tree"}, "name": {"type": "string", "pattern": "x", "title": "N"}},
        "$defs": {"Tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}},
    }

    narrowed = narrow(tree)

    assert narrowed["properties"]["name"] == {"type": "string"}
    assert "$ref" not in json.dumps(narrowed)


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    schema = decision_schema([{"name": "now"}], may_answer=False)

    assert schema["properties"]["arguments"]["properties"] == {}


def upstream_chunks(text: str, finish_reason: str | None = "stop") -> list[dict[str, Any]]:
    base = {"id": "x", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    chunks = [{**base, "choices": [{"delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
    if finish_reason:
        chunks.append({**base, "choices": [{"delta": {}, "finish_reason": finish_reason}]})
    return [*chunks, {**base, "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}]


def replied(decision: str, finish_reason: str | None = "stop", answer: str | None = None) -> dict[str, Any]:
    reply = Reply("none")
    chunks = [chunk for event in upstream_chunks(decision, finish_reason) for chunk in reply.decision(event)]
    if answer is not None:
        assert reply.chose_to_answer
        chunks += [chunk for event in upstream_chunks(answer) for chunk in reply.answer(event)]
    return completion([*chunks, reply.usage()])


def test_a_call_becomes_a_standard_tool_call() -> None:
    whole = replied('{"tool": "read", "arguments": {"path": "a"}}')

    choice = whole["choices"][0]
    call = choice["message"]["tool_calls"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    assert call["type"] == "function"
    assert call["id"].startswith("call_")
    assert call["function"] == {"name": "read", "arguments": '{"path": "a"}'}
    assert whole["usage"] == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}


def test_an_answer_follows_the_decision_for_no_tool_as_one_reply() -> None:
    whole = replied('{"tool": "none"}', answer="Yes,\nit is.")

    choice = whole["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "Yes,\nit is."}
    assert choice["finish_reason"] == "stop"
    assert whole["usage"] == {"prompt_tokens": 3, "completion_tokens": 8, "total_tokens": 11}


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_a_decision_that_breaks_off_says_so(reason: str) -> None:
    choice = replied('{"tool": "read", "arguments": {"pa', reason)["choices"][0]

    assert choice["finish_reason"] == "length"


def test_a_reply_without_an_end_is_no_completion() -> None:
    with pytest.raises(ValueError, match="finish reason"):
        replied('{"tool": "read", "arguments": {}}', None)
