"""Tools for models whose servers take none: told in the system text, called and answered in plain messages.

The loop recovers calls that a model writes as text, so that only the request has to be put into words here.
"""

from __future__ import annotations

import re
from typing import Any, Final

from popagent_kit import json

# As Ollama, OpenRouter, vLLM and llama.cpp say it, with statuses of 400, 404 and 500.
_REFUSED: Final = re.compile(
    r"does not support (?:tools|function|tool use)|(?:tools?|tool use|function calling) (?:is|are) not supported"
    r"|support tool use|tool choice requires --|tools param requires --",
    re.I,
)
# Around a call, as many models were trained to write it.
OPEN_TAG: Final = "<tool_call>"
CLOSE_TAG: Final = "</tool_call>"
_CLOSING: Final = "</tool_response>"


def _call(name: str, arguments: str) -> str:
    """Return a call of whose parts both are JSON already."""
    return f'{OPEN_TAG}{{"name": {name}, "arguments": {arguments}}}{CLOSE_TAG}'


HOW: Final = (
    "You have tools. To call one, answer with this and nothing else, one such line for each call, then wait for what "
    "it returns:\n" + _call('"…"', "{…}") + "\nWithout a call, answer in plain text."
)


def refuses_tools(detail: str) -> bool:
    """Tell whether a server's words mean that it takes no tools for this model."""
    return _REFUSED.search(detail) is not None


def speaks_of_tools(body: dict[str, Any]) -> bool:
    """Tell whether a request declares tools, or holds calls of some."""
    return "tools" in body or any("tool_calls" in each or each["role"] == "tool" for each in body["messages"])


def in_words(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request without the fields for tools; what they said stands in its messages.

    Neighbours of one role are joined: many templates want person and model to take turns.
    """
    tools, choice = body.get("tools", []), body.get("tool_choice", "auto")
    messages = [_message(each) for each in body["messages"]]
    if tools and choice != "none":
        messages = [{"role": "system", "content": _told(tools, choice)}, *messages]
    rest = {key: value for key, value in body.items() if key not in {"tools", "tool_choice", "parallel_tool_calls"}}
    return {**rest, "messages": _joined(messages)}


def _told(tools: list[dict[str, Any]], choice: str | dict[str, Any]) -> str:
    lines = [HOW, *(json.dumps(tool["function"]).decode() for tool in tools)]
    if isinstance(choice, dict):
        lines.append(f"Call {choice['function']['name']} now.")
    elif choice == "required":
        lines.append("Call one of them now.")
    return "\n".join(lines)


def _message(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] == "tool":
        # A result cannot end its own frame and go on as somebody else.
        result = message["content"].replace(_CLOSING, "<\\/tool_response>")
        return {"role": "user", "content": f"<tool_response>\n{result}\n{_CLOSING}"}
    if "tool_calls" not in message:
        return message
    calls = (each["function"] for each in message["tool_calls"])
    lines = [_call(json.dumps(call["name"]).decode(), call["arguments"]) for call in calls]
    return {"role": "assistant", "content": "\n".join(filter(None, [message.get("content"), *lines]))}


def _joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {**joined[-1], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined
