"""From the JSON objects of a response to events: one `Assembly` an answer."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Final

import orjson

from popagent_models.events import FinishReason, ModelEvent, ReasoningDelta, TextDelta, Usage
from popagent_models.failures import error_in_stream
from popagent_models.request import ModelRequest
from popagent_models.text_cleaning import TextJoiner
from popagent_models.tool_calls import ToolCallAssembly

log = logging.getLogger(__name__)

CHARACTERS_PER_TOKEN: Final = 4
MOST_TOKENS: Final = 1_000_000_000
FINISH_REASONS: Final[dict[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "tool_calls": "tool-calls",
    "tool_use": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "safety": "content-filter",
    "refusal": "content-filter",
}


class Assembly:
    """Takes payloads in order; afterwards holds finish reason, usage and the model that answered."""

    def __init__(self, request: ModelRequest, host: str) -> None:
        self.request = request
        self.host = host
        self.response_model: str | None = None
        self.finish: str | None = None
        self.seen_choice = False
        self.calls = ToolCallAssembly()
        self._text = TextJoiner()
        self._reasoning = TextJoiner()
        self._usage: dict[str, Any] | None = None
        self._characters = 0

    def take(self, payload: dict[str, Any]) -> list[ModelEvent]:
        """Return the events in one payload; a payload of another kind gives none.

        Raises:
            ModelError: The payload reports an error.
        """
        if payload.get("error") or payload.get("object") == "error":
            raise error_in_stream(payload, self.host, self.request.model)
        if self.response_model is None and isinstance(payload.get("model"), str):
            self.response_model = payload["model"]
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        choices = payload.get("choices")
        if not isinstance(choices, list) or not choices:
            return []
        choice = choices[0]
        if not isinstance(choice, dict) or (choice.get("index") or 0) != 0:
            return []
        self.seen_choice = True
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish = reason
        delta = choice.get("delta") or choice.get("message")
        return self._delta(delta) if isinstance(delta, dict) else []

    def end(self) -> list[ModelEvent]:
        """Return what was still held back."""
        events: list[ModelEvent] = []
        if rest := self._reasoning.end():
            events.append(ReasoningDelta(rest))
        if rest := self._text.end():
            events.append(TextDelta(rest))
        events.extend(self.calls.end())
        return events

    @property
    def means_tool_calls(self) -> bool:
        """Whether the server says that the answer is a tool call, whatever of it arrived."""
        return FINISH_REASONS.get((self.finish or "").lower()) == "tool-calls"

    @property
    def reason(self) -> FinishReason:
        """The finish reason in our words; a server that says `stop` behind a tool call means the call."""
        given = (self.finish or "stop").lower()
        reason = FINISH_REASONS.get(given)
        if reason is None:
            log.warning("unknown finish reason taken as stop", extra={"finish_reason": given[:64]})
            reason = "stop"
        if self.calls.slots:
            return "tool-calls" if reason == "stop" else reason
        return "stop" if reason == "tool-calls" else reason

    @property
    def usage(self) -> Usage:
        """The tokens as counted by the server, else estimated."""
        given = self._usage or {}
        read = count(given, "prompt_tokens", "input_tokens")
        written = count(given, "completion_tokens", "output_tokens")
        if not read and not written:
            return Usage(estimate_input(self.request), tokens_in(self._characters), estimated=True)
        return Usage(
            input_tokens=read,
            output_tokens=written,
            cached_tokens=count(given.get("prompt_tokens_details"), "cached_tokens")
            or count(given, "prompt_cache_hit_tokens"),
            reasoning_tokens=count(given.get("completion_tokens_details"), "reasoning_tokens"),
        )

    def _delta(self, delta: dict[str, Any]) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        if thought and isinstance(thought, str) and (text := self._reasoning.take(thought)):
            self._characters += len(text)
            events.append(ReasoningDelta(text))
        content = delta.get("content") or delta.get("refusal")
        if content and (text := self._text.take(content if isinstance(content, str) else text_of(content))):
            self._characters += len(text)
            events.append(TextDelta(text))
        fragments = delta.get("tool_calls")
        if fragments:
            for event in self.calls.take(fragments):
                self._characters += len(getattr(event, "arguments_fragment", ""))
                events.append(event)
        return events


def text_of(content: object) -> str:
    """Return the text of a content that is a list of parts."""
    if not isinstance(content, list):
        return ""
    texts: Iterable[object] = (part.get("text") for part in content if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


def count(given: object, *names: str) -> int:
    """Return the first of `names` that holds a sensible count, else 0."""
    if isinstance(given, dict):
        for name in names:
            value = given.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_TOKENS:
                return int(value)
    return 0


def tokens_in(characters: int) -> int:
    """Return the estimate for a text of this length."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def estimate_input(request: ModelRequest) -> int:
    """Return the estimate for everything the model reads."""
    characters = sum(len(str(message.get("content") or "")) for message in request.messages)
    characters += sum(
        len(orjson.dumps(message["tool_calls"])) for message in request.messages if "tool_calls" in message
    )
    return tokens_in(characters + (len(orjson.dumps(request.tools)) if request.tools else 0))
