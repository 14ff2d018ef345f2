"""Frames of live streams: `<first> <count> <flag>`, a line break, then ready SSE bytes that nobody parses on the way.

`first` counts the chunks of a turn or task from 0. Flags: `-` more follows, `E` the last frame, `H` a heartbeat
(no chunks; `first` is the next chunk's number).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

MORE: Final = "-"
END: Final = "E"
HEARTBEAT: Final = "H"
# Each chunk ends in a blank line, and JSON holds no raw line break.
CHUNK_END: Final = b"\n\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """Chunks `first` to `first + count - 1` of a stream as SSE bytes."""

    first: int
    count: int
    flag: str
    data: bytes

    @property
    def next(self) -> int:
        """Return the number of the chunk after this frame."""
        return self.first + self.count

    def encode(self) -> bytes:
        """Return the message's bytes."""
        return b"%d %d %s\n%s" % (self.first, self.count, self.flag.encode(), self.data)

    def after(self, chunk: int) -> Frame:
        """Return what this frame has from number `chunk` on."""
        known = min(max(0, chunk - self.first), self.count)
        if not known:
            return self
        rest = self.data
        for _ in range(known):
            rest = rest.partition(CHUNK_END)[2]
        return Frame(self.first + known, self.count - known, self.flag, rest)

    def split(self, max_bytes: int) -> Iterator[Frame]:
        """Yield frames of at most `max_bytes` of chunks each; one chunk above it is a frame of its own.

        What follows the last chunk without being counted leaves with the last frame.
        """
        if len(self.data) <= max_bytes or self.count <= 1:
            yield self
            return
        first, size = self.first, 0
        held: list[bytes] = []
        *chunks, rest = self.data.split(CHUNK_END, self.count)
        for chunk in chunks:
            if held and size + len(chunk) + 2 > max_bytes:
                yield Frame(first, len(held), MORE, CHUNK_END.join(held) + CHUNK_END)
                first, size, held = first + len(held), 0, []
            held.append(chunk)
            size += len(chunk) + 2
        yield Frame(first, len(held), self.flag, CHUNK_END.join(held) + CHUNK_END + rest)


def decode(message: bytes) -> Frame:
    """Return the frame.

    Raises:
        ValueError: Not a frame.
    """
    head, newline, data = message.partition(b"\n")
    first, count, flag = head.split(b" ")
    if not newline or int(first) < 0 or int(count) < 0:
        raise ValueError("not a frame")
    return Frame(int(first), int(count), flag.decode(), data)
