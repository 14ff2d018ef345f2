"""Every move a task can make, and what follows an attempt. Nothing here asks a clock or a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from popagent_proto.task_runner.tasks import TaskErrorClass, TaskSource, TaskState, TaskStateError

Move = Literal["claim", "cancel", "complete", "requeue", "fail", "bury", "resolve", "retry", "delete"]
"""`requeue`, `fail` and `bury` (dead-letter) end an attempt, as `complete` does; `retry` sends back what failed: its
remediation does, or a person."""
EndingMove = Literal["complete", "requeue", "fail", "bury"]
After = TaskState | Literal["deleted"]

TERMINAL: Final[frozenset[TaskState]] = frozenset({"completed", "failed", "cancelled", "dead-letter"})

MOVES: Final[dict[tuple[TaskState, Move], After]] = {
    ("queued", "claim"): "running",
    ("queued", "cancel"): "cancelled",
    ("running", "cancel"): "cancelling",
    ("running", "complete"): "completed",
    ("running", "requeue"): "queued",
    ("running", "fail"): "failed",
    ("running", "bury"): "dead-letter",
    # However an attempt ends that was asked to: it was cancelled.
    ("cancelling", "complete"): "cancelled",
    ("cancelling", "requeue"): "cancelled",
    ("cancelling", "fail"): "cancelled",
    ("cancelling", "bury"): "cancelled",
    ("cancelling", "cancel"): "cancelling",
    ("cancelled", "cancel"): "cancelled",
    ("failed", "retry"): "queued",
    ("dead-letter", "retry"): "queued",
    ("failed", "bury"): "dead-letter",
    ("failed", "resolve"): "completed",
    ("cancelled", "resolve"): "completed",
    ("dead-letter", "resolve"): "completed",
    **{(state, "delete"): "deleted" for state in TERMINAL},
}

REFUSALS: Final[dict[Move, str]] = {
    "cancel": "Only what waits or runs can be cancelled.",
    "resolve": "Only failed, cancelled and dead-lettered tasks can be resolved.",
    "retry": "Only failed and dead-lettered tasks can be tried again.",
    "delete": "Cancel it, and delete it when it has ended.",
}


def after(state: TaskState, move: Move) -> After:
    """Return the state that the move leads to.

    Raises:
        TaskStateError: There is no such move; the sentence and `state` beside it name the state.
    """
    found = MOVES.get((state, move))
    if found is None:
        more = REFUSALS.get(move, "")
        raise TaskStateError(f"This task is {state}. {more}".rstrip(), extra={"state": state})
    return found


# Ended by something that goes away by itself, without a fault of the task.
PASSING: Final[frozenset[TaskErrorClass]] = frozenset(
    {"provider", "rate-limit", "database", "infrastructure", "restart"}
)
# What a contained task, whose next attempt begins with a fresh clone, tries again by itself.
RETRIED_WHEN_CONTAINED: Final[frozenset[TaskErrorClass]] = PASSING | {"timeout", "browser", "runner-lost"}

FIRST_PAUSE_S: Final = 2.0
LONGEST_PAUSE_S: Final = 300.0


def pause_s(attempt: int) -> float:
    """Return how long a task waits after this attempt: twice as long each time, five minutes at most."""
    return min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(max(attempt, 1) - 1, 20))


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What is known of an attempt that ended; `acted`: it had written down that it was about to change something."""

    attempt: int
    max_attempts: int
    source: TaskSource
    workflow: bool
    acted: bool
    is_remediation: bool
    has_remediation: bool
    stop_requested: bool

    @property
    def contained(self) -> bool:
        """Whether it works in a clone of its own, out of which only a verified commit comes."""
        return self.source == "self-update" or self.workflow

    @property
    def state(self) -> TaskState:
        """Return the state in which it ends."""
        return "cancelling" if self.stop_requested else "running"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What follows. `raises_ceiling`: the attempt does not count against the task.

    `alone`: the next attempt is the last and its runners were lost, so that no other such task runs beside it: those
    that were only near when one killed the process are not dead-lettered with it.
    """

    move: EndingMove
    delay_s: float = 0.0
    raises_ceiling: bool = False
    files_remediation: bool = False
    alone: bool = False
    explanation: str | None = None


def judge(attempt: Attempt, cause: TaskErrorClass | None) -> Verdict:
    """Decide what follows an attempt that ended by `cause`, or without an error where it is None."""
    if cause is None:
        return Verdict(move="complete")
    if attempt.stop_requested:
        return Verdict(move="fail")  # which of a cancelling task is its cancellation
    if attempt.is_remediation and cause != "runner-lost":
        return _again(attempt, cause, raises_ceiling=True)
    if cause in PASSING and not attempt.acted:
        return _again(attempt, cause, raises_ceiling=True)
    repeatable = attempt.contained or not attempt.acted or attempt.is_remediation
    if (cause == "runner-lost" and repeatable) or (attempt.contained and cause in RETRIED_WHEN_CONTAINED):
        return _again(attempt, cause) if attempt.attempt < attempt.max_attempts else _buried(attempt, cause)
    return _after_a_lasting_failure(attempt, cause)


def _after_a_lasting_failure(attempt: Attempt, cause: TaskErrorClass) -> Verdict:
    if attempt.attempt >= attempt.max_attempts:
        return _buried(attempt, cause)
    if attempt.has_remediation:
        return _again(attempt, cause)
    return Verdict(move="fail", files_remediation=not attempt.is_remediation)


def _again(attempt: Attempt, cause: TaskErrorClass, *, raises_ceiling: bool = False) -> Verdict:
    delay_s = 0.0 if cause == "restart" else pause_s(attempt.attempt)
    alone = cause == "runner-lost" and attempt.attempt + 1 >= attempt.max_attempts
    return Verdict(move="requeue", delay_s=delay_s, raises_ceiling=raises_ceiling, alone=alone)


def _buried(attempt: Attempt, cause: TaskErrorClass) -> Verdict:
    return Verdict(move="bury", explanation=exhausted(attempt.attempt, attempt.max_attempts, cause))


def exhausted(attempt: int, max_attempts: int, cause: TaskErrorClass) -> str:
    """Return the sentence that a dead-lettered task carries."""
    why = {
        "runner-lost": "the process that ran it was gone each time, perhaps because of what it does",
        "timeout": "it took longer than a task may",
        "stale": "nobody had ended it long after its time was over",
    }.get(cause, f"the last one failed ({cause})")
    return f"Attempt {attempt} of {max_attempts} was the last: {why}. Nothing tries it again; a person decides."


# A row that nobody ended so long after its time limit is stale.
STALE_AFTER_S: Final = 600.0


def cause_of_loss(*, ran_s: float, timeout_s: float, boot_gone: bool) -> TaskErrorClass:
    """Return what ended an attempt whose lease ran out: age, the end of the whole suite, or of its runner alone."""
    if ran_s > timeout_s + STALE_AFTER_S:
        return "stale"
    return "restart" if boot_gone else "runner-lost"
