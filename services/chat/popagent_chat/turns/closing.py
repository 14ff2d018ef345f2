"""How an answer that cannot go on is closed: in legal order, and in words that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from popagent_agent.activity import cut_off
from popagent_agent.emitter import ACTIVITY_PART, AGENT_ACTIVITY
from popagent_chat.turns.stream import TurnStream
from popagent_proto.chat.messages import FAILURE
from popagent_proto.chat.turns import TurnState
from popagent_telemetry import redact
from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk
from popagent_uistream.state import StreamState

INTERRUPTED: Final = (
    "The answer was interrupted because the service that wrote it stopped. What it had written is kept; "
    "ask again to go on."
)
BROKEN: Final = "Something went wrong on our side, and the answer could not be written. The log holds the reason."
STOPPED: Final = "stopped by the person"
TEXT_ID: Final = "failure"


@dataclass(frozen=True)
class Ending:
    """What is known at the end."""

    state: TurnState
    error_class: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


async def interrupted(stream: TurnStream) -> Ending:
    """Close an answer whose process stops or is gone; what it had written stays."""
    error = {"class": "interrupted", "text": INTERRUPTED}
    await _close(stream, chunks.error(INTERRUPTED), {"endReason": "interrupted", "error": error})
    return Ending("interrupted", "interrupted")


async def stopped(stream: TurnStream) -> Ending:
    """Close an answer that was stopped before its first word."""
    await _close(stream, chunks.abort(reason=STOPPED), {"endReason": "stopped"})
    return Ending("stopped")


async def failed(stream: TurnStream, error_class: str, sentence: str) -> Ending:
    """Say in the answer why it ends here; what was written before stays."""
    sentence = redact(sentence)
    await close_open(stream)
    for chunk in (
        chunks.start_step(),
        chunks.text_start(TEXT_ID, provider_metadata=FAILURE),
        chunks.text_delta(TEXT_ID, sentence),
        chunks.text_end(TEXT_ID),
        chunks.finish_step(),
    ):
        await stream.emit(chunk)
    error = {"class": error_class, "text": sentence}
    await _close(stream, chunks.error(sentence), {"endReason": "error", "error": error})
    return Ending("failed", error_class)


async def close_open(stream: TurnStream) -> None:
    """Begin the answer if it has not begun, and close whatever is open in it, the work of specialists too."""
    stream.open()
    for delegation, activity in [(part["id"], part["data"]) for part in stream.message["parts"] if _is_running(part)]:
        await stream.emit(chunks.data(AGENT_ACTIVITY, cut_off(activity), data_id=delegation, transient=True))
    for chunk in StreamState.of(stream.message).close_open():
        await stream.emit(chunk)


def _is_running(part: Mapping[str, Any]) -> bool:
    """Tell whether it is the activity of a specialist that has not ended."""
    data = part.get("data")
    return part["type"] == ACTIVITY_PART and isinstance(data, dict) and data.get("state") == "running"


async def _close(stream: TurnStream, ending: Chunk, metadata: dict[str, Any]) -> None:
    await close_open(stream)
    if not stream.message["parts"]:
        # The official client refuses a stored message without parts.
        await stream.emit(chunks.start_step())
        await stream.emit(chunks.finish_step())
    stream.note(metadata)
    await stream.emit(ending)
