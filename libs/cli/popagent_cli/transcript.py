"""Stored messages as Markdown."""

from __future__ import annotations

from typing import Any

from popagent_cli.printing import size
from popagent_cli.safe_text import one_safe_line, safe
from popagent_kit import json

Message = dict[str, Any]
Part = dict[str, Any]

NAMES = {"user": "You", "assistant": "popagent"}
ARGUMENT_CHARACTERS = 72
REFUSAL_CHARACTERS = 400


def as_markdown(messages: list[Message]) -> str:
    """Return one section a message; tool calls are one line each, reasoning is left out."""
    return "\n\n".join(map(_section, messages))


def _section(message: Message) -> str:
    head = f"### {NAMES.get(message['role'], str(message['role']))}"
    blocks: list[str] = []
    for part in message["parts"]:
        if part["type"] == "text" and part["text"].strip():
            blocks.append(safe(part["text"]).strip())
        elif "toolCallId" in part:
            line = f"- `{call_label(tool_name(part), part.get('input'))}` {call_result(part)}".rstrip()
            if blocks and blocks[-1].startswith("- `"):
                blocks[-1] += "\n" + line
            else:
                blocks.append(line)
    reason = message.get("metadata", {}).get("endReason") if isinstance(message.get("metadata"), dict) else None
    if reason in {"stopped", "interrupted", "error"}:
        blocks.append(f"*({reason})*")
    return "\n\n".join([head, *blocks])


def tool_name(part: Part) -> str:
    """Return the name of the tool that a part speaks of."""
    if part["type"] == "dynamic-tool":
        return str(part["toolName"])
    return str(part["type"]).removeprefix("tool-")


def call_label(name: str, arguments: Any) -> str:
    """Return a call as a person would write it: `read README.md`, `grep word folder`."""
    values = [arguments]
    if isinstance(arguments, dict):
        # A store may order keys its own way, so the order is ours: where to look comes last, everywhere goes unsaid.
        values = [arguments[key] for key in sorted(arguments, key=lambda key: key == "path") if arguments[key] != "."]
    words = [str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]
    return one_safe_line(" ".join([name, *words]), ARGUMENT_CHARACTERS)


def call_result(part: Part) -> str:
    """Return how much came back, or why nothing did; empty while the call runs."""
    if part["state"] == "output-available":
        return size(output_bytes(part["output"]))
    if part["state"] == "output-error":
        return failure(part)
    return "was denied" if part["state"] == "output-denied" else ""


def failure(told: dict[str, Any]) -> str:
    """Return why a call gave nothing; what a hook says of its refusal is for the reader, and is not cut short."""
    text = str(told["errorText"])
    if (told.get("toolMetadata") or {}).get("refused"):
        return one_safe_line(text, REFUSAL_CHARACTERS)
    return "failed: " + one_safe_line(text, ARGUMENT_CHARACTERS)


def output_bytes(output: Any) -> int:
    """Return the size of a tool's result as the model reads it."""
    return len(output.encode()) if isinstance(output, str) else len(json.dumps(output))
