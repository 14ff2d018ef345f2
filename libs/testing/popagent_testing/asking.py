"""Asking a model in a test: `ask` collects the whole answer, and the error instead of raising it."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field

from popagent_models.client import ModelClient
from popagent_models.errors import ModelError
from popagent_models.events import Finished, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart, Usage
from popagent_models.request import ModelRequest


@dataclass
class Heard:
    """Everything a call yielded, and how it ended."""

    events: list[ModelEvent] = field(default_factory=list)
    error: ModelError | None = None

    @property
    def text(self) -> str:
        """The answer's text."""
        return "".join(event.text for event in self.events if isinstance(event, TextDelta))

    @property
    def reasoning(self) -> str:
        """The reasoning's text."""
        return "".join(event.text for event in self.events if isinstance(event, ReasoningDelta))

    @property
    def calls(self) -> list[tuple[str, str, str]]:
        """Id, name and arguments of each tool call."""
        starts = [event for event in self.events if isinstance(event, ToolCallStart)]
        deltas = [event for event in self.events if isinstance(event, ToolCallDelta)]
        joined = {start.index: "" for start in starts}
        for delta in deltas:
            joined[delta.index] += delta.arguments_fragment
        return [(start.call_id, start.name, joined[start.index]) for start in starts]

    @property
    def usage(self) -> Usage | None:
        """The usage event, None without one."""
        return next((event for event in self.events if isinstance(event, Usage)), None)

    @property
    def finish(self) -> str | None:
        """The finish reason, None when the answer was not completed."""
        return next((event.reason for event in self.events if isinstance(event, Finished)), None)


def request(text: str = "hello there", model: str = "scripted-model", **fields: object) -> ModelRequest:
    """Return a request with one user message."""
    return ModelRequest(model, [{"role": "user", "content": text}], **fields)  # type: ignore[arg-type]


async def ask(client: ModelClient, asked: ModelRequest | None = None) -> Heard:
    """Run one call to its end."""
    heard = Heard()
    try:
        async with aclosing(client.stream(asked or request())) as stream:
            async for event in stream:
                heard.events.append(event)
    except ModelError as error:
        heard.error = error
    return heard
