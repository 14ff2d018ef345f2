"""Token estimates, on the safe side for code and for scripts with many bytes a character."""

from __future__ import annotations

from typing import Any, Final

from popagent_kit import json

BYTES_PER_TOKEN: Final = 3.5
# Role, separators and the template's own marks.
PER_MESSAGE: Final = 6


def estimate_tokens(text: str) -> int:
    """Return about how many tokens `text` has."""
    return int(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN) + 1


def message_tokens(message: dict[str, Any]) -> int:
    """Return about how many tokens a chat message has, tool calls included."""
    total = PER_MESSAGE + estimate_tokens(str(message.get("content") or ""))
    for call in message.get("tool_calls", ()):
        total += PER_MESSAGE + estimate_tokens(call["function"]["name"] + call["function"]["arguments"])
    return total


def schema_tokens(tools: list[dict[str, Any]]) -> int:
    """Return about how many tokens the descriptions of the tools take."""
    return estimate_tokens(json.dumps(tools).decode()) if tools else 0


def cut_text(text: str, tokens: int) -> str:
    """Return the beginning of `text` that fits into about `tokens`, on a line's end, with a note of what is missing."""
    room = int(tokens * BYTES_PER_TOKEN)
    data = text.encode("utf-8", "replace")
    if len(data) <= room:
        return text
    head = data[: max(0, room - 100)].decode("utf-8", "ignore")
    line_end = head.rfind("\n")
    if line_end > len(head) // 2:
        head = head[:line_end]
    return f"{head}\n[cut: {len(text) - len(head)} of {len(text)} characters are missing. Ask for a smaller part.]"
