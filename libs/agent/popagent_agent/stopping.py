"""Stop a run from outside at any point where it waits, without tearing what it is just writing."""

from __future__ import annotations

import asyncio
from types import TracebackType

from popagent_kit.errors import ConflictError


class StoppedError(ConflictError):
    """Somebody stopped the run."""

    code = "stopped"


class StopSignal:
    """Raised once, from the event loop of the run. What waits inside `interrupts()` ends at once with StoppedError."""

    def __init__(self) -> None:
        self.stopped = False
        self.reason = ""
        self._scopes: set[_Interruptible] = set()

    def stop(self, reason: str = "stopped") -> None:
        """End the run; a second call changes nothing."""
        if self.stopped:
            return
        self.stopped = True
        self.reason = reason
        for scope in tuple(self._scopes):
            scope.fire()

    def interrupts(self) -> _Interruptible:
        """Return the block whose waiting a stop ends; outside of such blocks a stop waits for the next one."""
        return _Interruptible(self, self._scopes)


class _Interruptible:
    """Cancels the task that entered it, and turns exactly that cancellation into StoppedError."""

    def __init__(self, signal: StopSignal, scopes: set[_Interruptible]) -> None:
        self._signal = signal
        self._scopes = scopes
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._fired = False

    def __enter__(self) -> None:
        if self._signal.stopped:
            raise StoppedError
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a run needs a task of its own")
        self._cancelling = self._task.cancelling()
        self._scopes.add(self)

    def fire(self) -> None:
        if self._task is not None and not self._fired:
            self._fired = True
            self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scopes.discard(self)
        if not self._fired or self._task is None:
            return
        # Another cancellation, by the owner of the run, counts on top of ours and must pass on.
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise StoppedError from error
