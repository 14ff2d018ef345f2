"""Specialists at work: a line for their begin, their end, and a call that a hook refused; else what they do now."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from popagent_cli.printing import duration
from popagent_cli.safe_text import one_safe_line
from popagent_cli.screen import Screen
from popagent_cli.transcript import ARGUMENT_CHARACTERS, REFUSAL_CHARACTERS
from popagent_uistream.chunks import Chunk
from popagent_uistream.reducer import merge

ACTIVITY: Final = "data-agentActivity"
NAME_CHARACTERS: Final = 40
TASK_CHARACTERS: Final = 100
ENDS: Final = {"completed": "done", "failed": "failed", "stopped": "stopped"}


@dataclass
class _Delegate:
    activity: dict[str, Any] = field(default_factory=dict)
    begun: bool = False
    ended: bool = False
    refused: set[str] = field(default_factory=set)


class Delegates:
    """The specialists of one turn, by the call that gave them their work; what is told again is not shown again."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._known: dict[str, _Delegate] = {}

    def take(self, chunk: Chunk) -> None:
        """Take what changed: a delta in the stream, the whole in a stored message."""
        delegate = self._known.setdefault(str(chunk["id"]), _Delegate())
        delegate.activity = merge(delegate.activity, chunk["data"])
        told = delegate.activity
        if not delegate.begun and "agentId" in told:
            delegate.begun = True
            asker = f", asked by {one_safe_line(str(told['askedBy']), NAME_CHARACTERS)}" if "askedBy" in told else ""
            task = one_safe_line(str(told.get("task", "")), TASK_CHARACTERS)
            self._screen.note(f"· {_name(told)} begins{asker}: {task}")
        if delegate.begun:
            self._refusals(delegate, chunk["data"].get("entries") or {})
        if delegate.begun and not delegate.ended and told.get("state") in ENDS:
            delegate.ended = True
            self._screen.note(f"· {_name(told)} {_end(told)}")

    def _refusals(self, delegate: _Delegate, changed: dict[str, Any]) -> None:
        for number in sorted(changed, key=int):
            entry = delegate.activity["entries"][number]
            if "refusal" in entry and number not in delegate.refused:
                delegate.refused.add(number)
                call = one_safe_line(f"{entry.get('tool', '')} {entry.get('input', '')}", ARGUMENT_CHARACTERS)
                reason = one_safe_line(str(entry["refusal"]), REFUSAL_CHARACTERS)
                self._screen.note(f"· {_name(delegate.activity)}: {call}  {reason}")

    def ended(self, call_id: str) -> bool:
        """Tell whether a line has said how it ended."""
        return call_id in self._known and self._known[call_id].ended

    def doing(self, call_id: str) -> str:
        """Return what one does now; empty when nothing is known of it."""
        delegate = self._known.get(call_id)
        if delegate is None or not delegate.begun:
            return ""
        entries = delegate.activity.get("entries") or {}
        last = entries[max(entries, key=int)] if entries else {}
        now = one_safe_line(str(last["tool"]), NAME_CHARACTERS) if last.get("state") == "running" else ""
        step = f"step {delegate.activity.get('steps') or 1} of {delegate.activity.get('maxSteps')}"
        return f"{_name(delegate.activity)}: {now or step}"


def _name(told: dict[str, Any]) -> str:
    return one_safe_line(str(told.get("agentName") or told["agentId"]), NAME_CHARACTERS)


def _end(told: dict[str, Any]) -> str:
    steps = told.get("steps") or 0
    usage = told.get("usage") or {}
    tokens = usage.get("inputTokens", 0) + usage.get("outputTokens", 0)
    facts = [f"{steps} step{'' if steps == 1 else 's'}"]
    if tokens:
        facts.append(f"{tokens:,} tokens")
    if "durationMs" in told:
        facts.append(duration(told["durationMs"]))
    return f"{ENDS[told['state']]}  {', '.join(facts)}"
