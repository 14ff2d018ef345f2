"""What a specialist does, for those who watch and the stored message: deltas of an AgentActivity, bounded in all."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from popagent_agent.ports import DelegationState
from popagent_agent.run_context import RunContext
from popagent_agent.tokens import usage_metadata
from popagent_kit import json
from popagent_kit.clock import now, wire_time
from popagent_kit.text import excerpt, one_line
from popagent_models.events import Usage
from popagent_telemetry import redact
from popagent_uistream.chunks import Chunk

Tell = Callable[[Mapping[str, Any]], Awaitable[None]]

MOST_ENTRIES: Final = 200
TEXT_PIECE: Final = 120
LONGEST_WORD: Final = 2_000
MOST_TEXT: Final = 12_000
TASK_CHARACTERS: Final = 600
INPUT_CHARACTERS: Final = 200
REFUSAL_CHARACTERS: Final = 400
CALL_ENDS: Final = {
    "tool-output-available": "done",
    "tool-output-error": "failed",
    "tool-output-denied": "failed",
    "tool-input-error": "failed",
}


class Activity:
    """Follows the chunks of one delegated run, and tells of them through `tell`."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._began_at = time.monotonic()
        self._steps = 0
        self._most_steps = 0
        self._entries = 0
        self._omitted = 0
        self._text = ""
        self._told_text = 0
        self._calls: dict[str, str] = {}

    async def begin(self, run: RunContext, task: str, max_steps: int, asked_by: str | None = None) -> None:
        """Tell who begins with what; `asked_by` is the agent whose letter woke it."""
        self._most_steps = max_steps
        await self._tell(
            {
                "agentId": run.agent.id,
                "agentName": run.agent.name,
                "model": run.route.model,
                "threadId": run.thread_id,
                "task": excerpt(redact(task), TASK_CHARACTERS),
                **({"askedBy": asked_by} if asked_by is not None else {}),
                "maxSteps": max_steps,
                "startedAt": wire_time(now()),
                "state": "running",
                "steps": 0,
            }
        )

    async def take(self, chunk: Chunk) -> None:
        """Take the next chunk of the run."""
        kind = chunk["type"]
        if kind == "start-step":
            # A blank answer is asked for once more, which the ceiling does not count.
            if self._steps < self._most_steps:
                self._steps += 1
                await self._tell({"steps": self._steps})
        elif kind == "text-delta":
            self._text += chunk["delta"]
            if len(self._text) >= TEXT_PIECE:
                await self._tell_text(_whole_words(self._text))
        elif kind == "text-end":
            await self._tell_text(len(self._text))
        elif kind == "tool-input-available":
            await self._call_begun(chunk)
        elif kind in CALL_ENDS:
            await self._call_ended(chunk)

    async def end(self, state: DelegationState, usage: Usage, *, budget_exhausted: bool) -> None:
        """Tell how it ended, its calls that did not end with it."""
        unended = {number: {"state": "failed"} for number in self._calls.values()}
        self._calls.clear()
        await self._tell(
            {
                "state": state,
                **({"entries": unended} if unended else {}),
                "usage": usage_metadata(usage),
                "durationMs": round((time.monotonic() - self._began_at) * 1_000),
                "budgetExhausted": budget_exhausted,
                **({"omitted": self._omitted} if self._omitted else {}),
            }
        )

    async def _tell_text(self, characters: int) -> None:
        """Tell so much of what was not told yet; a credential is gone before it could be cut in two."""
        piece, self._text = self._text[:characters], self._text[characters:]
        text = redact(piece)[: MOST_TEXT - self._told_text]
        if not text.strip():
            return
        self._told_text += len(text)
        await self._entry({"kind": "text", "text": text})

    async def _call_begun(self, chunk: Chunk) -> None:
        given = one_line(redact(json.dumps(chunk["input"]).decode()), INPUT_CHARACTERS)
        number = await self._entry({"kind": "call", "tool": chunk["toolName"], "input": given, "state": "running"})
        if number is not None:
            self._calls[chunk["toolCallId"]] = number

    async def _call_ended(self, chunk: Chunk) -> None:
        ended = {"state": CALL_ENDS[chunk["type"]]}
        number = self._calls.pop(chunk["toolCallId"], None)
        if number is not None:
            about = dict(chunk.get("toolMetadata") or {})
            if about.pop("refused", False):
                about["refusal"] = one_line(redact(chunk["errorText"]), REFUSAL_CHARACTERS)
            await self._tell({"entries": {number: ended | about}})
        elif chunk["type"] == "tool-input-error":
            await self._entry({"kind": "call", "tool": chunk["toolName"], "input": "", **ended})

    async def _entry(self, entry: dict[str, Any]) -> str | None:
        """Tell a new entry and return its number, None when there are enough."""
        if self._entries >= MOST_ENTRIES:
            self._omitted += 1
            return None
        self._entries += 1
        number = str(self._entries)
        await self._tell({"entries": {number: {"step": self._steps, **entry}}})
        return number


def _whole_words(text: str) -> int:
    """Return how much of a text that goes on are words that do not; one without an end is told all the same."""
    unfinished = len(text.rsplit(None, 1)[-1]) if text[-1:].strip() else 0
    return len(text) - unfinished if unfinished < LONGEST_WORD else len(text)


def cut_off(activity: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ends an activity whose run ended without a word of it."""
    entries = activity.get("entries") or {}
    unended = {number: {"state": "failed"} for number, entry in entries.items() if entry.get("state") == "running"}
    return {"state": "stopped", **({"entries": unended} if unended else {})}
