"""Server-sent events with names and ids, whatever the pieces in which the bytes arrive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class SentEvent:
    """One event; `name` and `id` are empty when it has none."""

    name: str
    id: str
    data: str


def sent_events(pieces: Iterable[bytes]) -> Iterator[SentEvent]:
    """Yield events as they end; comments are dropped, an unfinished last event too."""
    pending = b""
    fields: dict[str, list[str]] = {}
    for piece in pieces:
        *lines, pending = (pending + piece).split(b"\n")
        for line in lines:
            text = line.removesuffix(b"\r").decode("utf-8", "replace")
            name, _, value = text.partition(":")
            if text and name:
                fields.setdefault(name, []).append(value.removeprefix(" "))
            elif not text and fields:
                found = {key: "\n".join(values) for key, values in fields.items()}
                fields.clear()
                yield SentEvent(found.get("event", ""), found.get("id", ""), found.get("data", ""))
