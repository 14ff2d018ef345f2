"""What hooks are told and what they said, as it may be sent and stored: without secrets, and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from popagent_kit import json
from popagent_kit.text import excerpt
from popagent_proto.chat.hooks import HookEvent
from popagent_telemetry import redact, redact_value

LARGEST_BYTES: Final = 16_384
LONGEST_REASON: Final = 2_000
SUBJECT_CHARACTERS: Final = 200
# Texts are cut to fewer and fewer characters, and lists to fewer items, until the whole fits.
_CUTS: Final = ((4_000, 200), (1_000, 50), (250, 20), (60, 10))
# A character takes up to six bytes in JSON.
_LAST_CUT: Final = 2_500


def event_body(
    event: HookEvent,
    subject: str,
    content: Mapping[str, Any],
    *,
    session_id: str | None = None,
    task_id: str | None = None,
    turn_id: str | None = None,
    trace_id: str | None = None,
    agent_id: str | None = None,
) -> dict[str, Any]:
    """Return what every hook of an event is sent; without ids it is an example."""
    return {
        "event": event,
        "sessionId": session_id,
        "taskId": task_id,
        "turnId": turn_id,
        "traceId": trace_id,
        "agentId": agent_id,
        "subject": excerpt(subject, SUBJECT_CHARACTERS),
        "input": bounded(content),
    }


def bounded(value: Any) -> Any:
    """Return a JSON value of at most LARGEST_BYTES as JSON, redacted; what was cut ends in an ellipsis."""
    clean = _without_nul(redact_value(value))
    for characters, items in _CUTS:
        if len(json.dumps(clean)) <= LARGEST_BYTES:
            return clean
        clean = _cut(clean, characters, items)
    text = json.dumps(clean)
    return clean if len(text) <= LARGEST_BYTES else {"cut": excerpt(text.decode(), _LAST_CUT)}


def bounded_text(data: bytes | str) -> str:
    """Return text of at most LARGEST_BYTES in UTF-8, redacted; what was cut ends in an ellipsis."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    text = redact(text).replace("\x00", "\ufffd")
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= LARGEST_BYTES:
        return text
    return encoded[: LARGEST_BYTES - 3].decode("utf-8", "ignore") + "…"


def bounded_reason(text: str) -> str:
    """Return the words of a hook as a model and a person read them."""
    return excerpt(redact(text.replace("\x00", "\ufffd")).strip(), LONGEST_REASON)


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd")
    if isinstance(value, dict):
        return {str(name).replace("\x00", "\ufffd"): _without_nul(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_nul(item) for item in value]
    return value


def _cut(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str):
        return excerpt(value, characters)
    if isinstance(value, dict):
        kept = list(value.items())[:items]
        cut = {excerpt(name, characters): _cut(item, characters, items) for name, item in kept}
        return cut if len(value) <= items else {**cut, "…": f"{len(value) - items} more"}
    if isinstance(value, list):
        cut_items = [_cut(item, characters, items) for item in value[:items]]
        return cut_items if len(value) <= items else [*cut_items, f"… {len(value) - items} more"]
    return value
