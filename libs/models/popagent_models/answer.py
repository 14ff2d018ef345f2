"""One answer while it arrives: bytes in, events out, and the rules about when it counts as complete."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from popagent_models.assembly import Assembly
from popagent_models.errors import ModelError, ModelProviderError
from popagent_models.events import Finished, ModelEvent, ReasoningDelta, TextDelta, ToolCallDelta
from popagent_models.failures import cut_off, no_answer
from popagent_models.request import ModelRequest
from popagent_models.sse import BodyReader

log = logging.getLogger(__name__)


class Answer:
    """Feed it the body, then call `end`; `started` tells whether an event was given out."""

    def __init__(self, request: ModelRequest, host: str) -> None:
        self.host = host
        self.reader = BodyReader()
        self.assembly = Assembly(request, host)
        self.started = False

    @property
    def finished(self) -> bool:
        """Whether the model said that it is done; only usage can still come."""
        return self.assembly.finish is not None

    @property
    def closed(self) -> bool:
        """Whether nothing more is expected: a `[DONE]` behind the finish reason."""
        return self.finished and self.reader.done

    def feed(self, data: bytes) -> Iterator[ModelEvent]:
        """Yield the events that `data` completes, fragments of one text as one event; take all of them.

        Raises:
            ModelError: The body is out of bounds or reports an error; what came before that was yielded.
        """
        events: list[ModelEvent] = []
        failure: ModelError | None = None
        try:
            for payload in self.reader.feed(data):
                events += self.assembly.take(payload)
        except ModelError as error:
            failure = error
        for event in joined(events):
            self.started = True
            yield event
        if failure is not None:
            raise failure

    def end(self) -> list[ModelEvent]:
        """Return the last events, closed by `Usage` and `Finished`.

        Raises:
            ModelProviderError: Nothing came that is an answer, or it stopped without a finish reason.
        """
        events: list[ModelEvent] = []
        for payload in self.reader.end():
            events += self.assembly.take(payload)
        events += self.assembly.end()
        if self.reader.objects == 0:
            raise no_answer(self.host)
        whole_json = self.reader.is_json and bool(events)
        if not self.finished and not whole_json:
            raise cut_off(self.host) if self.assembly.seen_choice else no_answer(self.host)
        if self.reader.skipped:
            self._judge_skipped()
        return [*events, self.assembly.usage, Finished(self.assembly.reason)]

    def _judge_skipped(self) -> None:
        """A text may miss a word; a tool must not run with arguments of which a piece was lost."""
        log.warning(
            "unreadable lines in an answer were skipped",
            extra={"host": self.host, "lines": self.reader.skipped, "damaged": self.reader.damaged},
        )
        calls = bool(self.assembly.calls.slots) or self.assembly.means_tool_calls
        if self.reader.damaged and calls:
            raise ModelProviderError(f"The model server at {self.host} sent a damaged tool call.")


def joined(events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
    """Yield the events, neighbouring fragments of one text as one.

    What came at once was waited for once: a model that is faster than we are costs its reads, not its tokens.
    """
    last: ModelEvent | None = None
    for event in events:
        whole = None if last is None else _as_one(last, event)
        if last is not None and whole is None:
            yield last
        last = whole or event
    if last is not None:
        yield last


def _as_one(event: ModelEvent, following: ModelEvent) -> ModelEvent | None:
    match event, following:
        case TextDelta(text), TextDelta(more):
            return TextDelta(text + more)
        case ReasoningDelta(text), ReasoningDelta(more):
            return ReasoningDelta(text + more)
        case ToolCallDelta(index, text), ToolCallDelta(same, more) if index == same:
            return ToolCallDelta(index, text + more)
    return None
