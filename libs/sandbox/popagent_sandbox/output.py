"""What a command printed, however much: its beginning and its end are kept, as text that can be shown anywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from popagent_telemetry import redact

HEAD_BYTES: Final = 64_000
TAIL_BYTES: Final = 128_000

# Colours, cursor movements, window titles and what else a terminal would act upon.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
# Control characters, and those that turn the direction of text around or end a line unseen.
_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Printed:
    """`left_out_bytes` were printed between `head` and `tail`, and are gone; when it is 0 all is in `head`."""

    head: str
    tail: str = ""
    left_out_bytes: int = 0

    def within(self, characters: int) -> str:
        """Return it with at most about so many characters, a third of them from the beginning.

        What is cut is redacted before, since half a secret is not recognised.
        """
        if not self.left_out_bytes and len(self.head) <= characters:
            return self.head
        head, tail = redact(self.head), redact(self.tail)
        whole = head + tail
        first = characters // 3
        last = characters - first
        beginning = head[:first]
        end = (tail or head)[-last:]
        # Whole lines read better, where lines are not longer than what is kept.
        beginning = beginning[: beginning.rfind("\n") + 1] or beginning
        end = end[end.find("\n", 0, -1) + 1 :]
        left_out = len(whole) - len(beginning) - len(end) + self.left_out_bytes
        return f"{beginning.rstrip()}\n[… about {left_out} characters are left out here …]\n{end}"


class Output:
    """Takes bytes as they come and holds at most HEAD_BYTES and TAIL_BYTES of them."""

    def __init__(self, head_bytes: int = HEAD_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0
        self.total_bytes = 0

    @property
    def holds_any(self) -> bool:
        """Tell whether something was printed since the last `take`."""
        return bool(self._head)

    def add(self, data: bytes) -> None:
        """Take what was printed next."""
        self.total_bytes += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if len(data) > self._tail_bytes:
            self._left_out += len(self._tail) + len(data) - self._tail_bytes
            self._tail[:] = data[-self._tail_bytes :]
            return
        self._tail += data
        over = len(self._tail) - self._tail_bytes
        # Cut in larger pieces, so that a trickle does not move the whole tail each time.
        if over > self._tail_bytes // 2:
            del self._tail[:over]
            self._left_out += over

    def take(self) -> Printed:
        """Return what was printed since the last time, and forget it."""
        head, tail, left_out = bytes(self._head), bytes(self._tail), self._left_out
        if len(tail) > self._tail_bytes:
            left_out += len(tail) - self._tail_bytes
            tail = tail[-self._tail_bytes :]
        self._head.clear()
        self._tail.clear()
        self._left_out = 0
        if not left_out:
            return Printed(plain(head + tail))
        return Printed(plain(head), plain(tail), left_out)


def plain(data: bytes) -> str:
    """Return printed bytes as a terminal would leave them on the screen: no escapes, no control characters.

    Bytes that are no text and characters that steer are written as escapes; a line that was overwritten is left out.
    """
    text = _ESCAPES.sub("", data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(_last_written(line) for line in text.split("\n"))
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _last_written(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")
