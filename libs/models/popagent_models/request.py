"""What is asked of a model, and for whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Origin:
    """For whom a call is made; it goes into the usage record and the span, never to the provider."""

    turn_id: str | None = None
    task_id: str | None = None
    agent_id: str | None = None
    requested_model: str | None = None
    source: str = "request"
    background: bool = False


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call: `messages` and `tools` in the OpenAI chat shape.

    `tool_choice` is `auto`, `none`, `required`, or the name of the one tool that must be called.
    """

    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_choice: str = "auto"
    max_tokens: int | None = None
    temperature: float | None = None
    response_format: dict[str, Any] | None = None
    origin: Origin = field(default_factory=Origin)

    def body(self) -> dict[str, Any]:
        """Return the request body; it always asks for a stream with usage."""
        body: dict[str, Any] = {
            "model": self.model,
            "messages": self.messages,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self.tools:
            body["tools"] = self.tools
            plain = self.tool_choice in {"auto", "none", "required"}
            named = {"type": "function", "function": {"name": self.tool_choice}}
            body["tool_choice"] = self.tool_choice if plain else named
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.response_format is not None:
            body["response_format"] = self.response_format
        return body
