"""Stored UI messages to chat messages of the model's wire format: the same text while a turn runs and ever after."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from popagent_agent.normalise import normalised, says_something
from popagent_agent.tokens import cut_text
from popagent_kit import json

ChatMessage = dict[str, Any]
UIMessage = Mapping[str, Any]

NO_RESULT: Final = "Error: the call was interrupted and has no result."
# What the strictest servers take: a history that they refuse would end every later turn of its session.
LONGEST_NAME: Final = 64
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]")
_WIRE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
NO_ANSWER: Final = "[This turn ended without an answer.]"


def user_message(message: UIMessage, context: str = "") -> ChatMessage:
    """Return what the person said; `context` is ours and stands before it, marked as such."""
    texts = [f"<context>\n{context}\n</context>"] if context else []
    for part in message["parts"]:
        if part["type"] == "text":
            texts.append(normalised(part["text"]))
        elif part["type"] == "file":
            texts.append(f"[attached file: {part.get('filename') or 'unnamed'}, {part.get('mediaType')}]")
    return {"role": "user", "content": "\n\n".join(texts)}


def reminder(text: str) -> ChatMessage:
    """Return a word of ours in the middle of a turn; as a user message, since not every template takes another."""
    return {"role": "user", "content": f"<reminder>\n{text}\n</reminder>"}


def assistant_messages(parts: Iterable[Mapping[str, Any]], output_tokens: int) -> list[ChatMessage]:
    """Return the assistant and tool messages of one UI message, step by step, every call with its result.

    Reasoning, sources and data parts are left out; outputs are cut to `output_tokens`.
    """
    return [message for step in steps_of(parts) for message in _step_messages(step, output_tokens)]


def steps_of(parts: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the parts of a message step by step, without the marks between them."""
    steps: list[list[Mapping[str, Any]]] = [[]]
    for part in parts:
        if part["type"] == "step-start":
            steps.append([])
        else:
            steps[-1].append(part)
    return steps


def visible_text(parts: Iterable[Mapping[str, Any]]) -> str:
    """Return the texts of the parts that say something, as one."""
    return "\n\n".join(part["text"] for part in parts if part["type"] == "text" and says_something(part["text"]))


def is_tool_part(part: Mapping[str, Any]) -> bool:
    """Tell whether the part is a tool call."""
    kind = str(part["type"])
    return kind == "dynamic-tool" or kind.startswith("tool-")


def tool_name(part: Mapping[str, Any]) -> str:
    """Return the name of the tool that a tool part calls."""
    return str(part["toolName"] if part["type"] == "dynamic-tool" else part["type"].removeprefix("tool-"))


def wire_name(name: str) -> str:
    """Return a name as servers accept it in a history; a model may have called what no tool is named like."""
    return _NOT_IN_NAMES.sub("_", name)[:LONGEST_NAME] or "unnamed"


def wire_id(call_id: str) -> str:
    """Return the id of a call as servers accept it: as it is, or a short one made from it, always the same."""
    if _WIRE_ID.fullmatch(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


def call_arguments(part: Mapping[str, Any]) -> str:
    """Return the arguments of a tool part as JSON; what was no JSON object is `{}`, since servers parse it."""
    given = part.get("input")
    return json.dumps(given).decode() if isinstance(given, dict) else "{}"


def call_result(part: Mapping[str, Any]) -> str:
    """Return the result of a tool part as the model reads it."""
    state = part["state"]
    if state == "output-available" and not part.get("preliminary"):
        output = part["output"]
        return output if isinstance(output, str) else json.dumps(output).decode()
    if state == "output-error":
        return f"Error: {part['errorText']}"
    if state == "output-denied":
        return "Error: the person refused this call."
    return NO_RESULT


def _step_messages(parts: list[Mapping[str, Any]], output_tokens: int) -> list[ChatMessage]:
    text = visible_text(parts)
    calls = [part for part in parts if is_tool_part(part)]
    if not text and not calls:
        return []
    answer: ChatMessage = {"role": "assistant", "content": text}
    if calls:
        answer["tool_calls"] = [
            {
                "id": wire_id(part["toolCallId"]),
                "type": "function",
                "function": {"name": wire_name(tool_name(part)), "arguments": call_arguments(part)},
            }
            for part in calls
        ]
    results = [
        {
            "role": "tool",
            "tool_call_id": wire_id(part["toolCallId"]),
            "content": cut_text(call_result(part), output_tokens),
        }
        for part in calls
    ]
    return [answer, *results]
