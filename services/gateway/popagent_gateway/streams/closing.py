"""Tells every open stream that the door closes, so that each ends with a word instead of a cut."""

from __future__ import annotations

from collections.abc import Callable


class Closing:
    """Set once, and never unset."""

    def __init__(self) -> None:
        self._listeners: set[Callable[[], None]] = set()
        self.is_set = False

    def set(self) -> None:
        """Wake every stream; those that start later end at once."""
        self.is_set = True
        for listener in tuple(self._listeners):
            listener()

    def add(self, listener: Callable[[], None]) -> None:
        """Call `listener` when the door closes, at once when it has closed."""
        self._listeners.add(listener)
        if self.is_set:
            listener()

    def remove(self, listener: Callable[[], None]) -> None:
        """Forget the listener."""
        self._listeners.discard(listener)
