"""Token counts: estimates, on the safe side for code and for scripts with many bytes a character."""

from __future__ import annotations

from typing import Any, Final

from popagent_kit import json
from popagent_models.events import Usage

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


def fits(text: str, tokens: int) -> bool:
    """Tell whether `text` is as long as about `tokens` at most."""
    return len(text.encode("utf-8", "replace")) <= int(tokens * BYTES_PER_TOKEN)


def beginning(text: str, tokens: int, note: str) -> str:
    """Return the beginning of `text` behind which `note` fits into about `tokens`; a long note leaves half of them."""
    room = int(tokens * BYTES_PER_TOKEN)
    kept = max(room // 2, room - len(note.encode("utf-8", "replace")))
    return text.encode("utf-8", "replace")[:kept].decode("utf-8", "ignore")


def cut_text(text: str, tokens: int) -> str:
    """Return the beginning of `text` that fits into about `tokens`, on a line's end, with a note of what is missing."""
    if fits(text, tokens):
        return text
    room = int(tokens * BYTES_PER_TOKEN)
    data = text.encode("utf-8", "replace")
    head = data[: max(0, room - 100)].decode("utf-8", "ignore")
    line_end = head.rfind("\n")
    if line_end > len(head) // 2:
        head = head[:line_end]
    return f"{head}\n[cut: {len(text) - len(head)} of {len(text)} characters are missing. Ask for a smaller part.]"


def added(one: Usage, other: Usage) -> Usage:
    """Return the tokens of both; estimated when one of them is."""
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_tokens + other.cached_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        one.estimated or other.estimated,
    )


def usage_metadata(usage: Usage) -> dict[str, Any]:
    """Return the tokens as a message and the activity of an agent tell them."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "estimated": usage.estimated,
    }
