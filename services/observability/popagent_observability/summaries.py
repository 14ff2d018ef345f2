"""What a stored span adds to the summary of its trace: differences, so that no trace is ever counted again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from popagent_observability.records import SpanRow


@dataclass(slots=True)
class Addition:
    """What one batch adds to one trace; the fields are the columns of `traces`."""

    trace_id: str
    name: str
    service: str
    root_rank: int
    root_started_at: datetime
    started_at: datetime
    ended_at: datetime | None
    seen_at: datetime
    span_count: int = 0
    open_count: int = 0
    failed_count: int = 0
    session_id: str | None = None
    turn_id: str | None = None
    turn_state: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0

    def add(self, span: SpanRow, *, announced: bool) -> None:
        """Count a span that is new, or was `announced` and has ended."""
        ended = span.ended_at is not None
        self.span_count += not announced
        self.open_count += -1 if announced else not ended
        if ended:
            self.failed_count += span.failed
            self.input_tokens += span.input_tokens
            self.output_tokens += span.output_tokens
        self.started_at = min(self.started_at, span.started_at)
        if span.ended_at is not None:
            self.ended_at = max(self.ended_at or span.ended_at, span.ended_at)
        self.session_id = self.session_id or span.session_id
        self.turn_id = self.turn_id or span.turn_id
        self.turn_state = span.turn_state or self.turn_state
        rank = root_rank(span)
        if (rank, span.started_at) < (self.root_rank, self.root_started_at):
            self.root_rank, self.root_started_at = rank, span.started_at
            self.name, self.service = span.name, span.service


def root_rank(span: SpanRow) -> int:
    """Return 0 for a span without parent, 1 for one that only stands in until that is known."""
    return 0 if span.parent_id is None else 1


def additions(changed: Iterable[tuple[SpanRow, bool]], seen_at: datetime) -> list[Addition]:
    """Return one addition a trace, in the order of the ids, as rows are locked; pairs are (span, announced)."""
    found: dict[str, Addition] = {}
    for span, announced in changed:
        entry = found.get(span.trace_id)
        if entry is None:
            entry = found[span.trace_id] = Addition(
                span.trace_id,
                span.name,
                span.service,
                root_rank(span),
                span.started_at,
                span.started_at,
                span.ended_at,
                seen_at,
            )
        entry.add(span, announced=announced)
    return [found[trace_id] for trace_id in sorted(found)]
