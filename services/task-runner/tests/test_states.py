"""The rules of TK-2, TK-3, TK-6 and TK-14, over every attempt there can be."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_proto.task_runner.tasks import TaskErrorClass, TaskState, TaskStateError
from popagent_task_runner.tasks.states import (
    LONGEST_PAUSE_S,
    MOVES,
    PASSING,
    STALE_AFTER_S,
    TERMINAL,
    Attempt,
    Move,
    Verdict,
    after,
    cause_of_loss,
    judge,
    pause_s,
)

STATES: tuple[TaskState, ...] = get_args(TaskState)
ALL_MOVES = get_args(Move)
CAUSES = st.sampled_from(get_args(TaskErrorClass))
LASTING = ("hook-denied", "validation", "permission", "configuration", "unknown", "cancelled")

ATTEMPTS = st.builds(
    Attempt,
    attempt=st.integers(1, 60),
    max_attempts=st.integers(1, 60),
    source=st.sampled_from(["user", "self-update"]),
    workflow=st.booleans(),
    acted=st.booleans(),
    is_remediation=st.booleans(),
    has_remediation=st.booleans(),
    stop_requested=st.booleans(),
)
PLAIN = Attempt(
    attempt=1,
    max_attempts=3,
    source="user",
    workflow=False,
    acted=False,
    is_remediation=False,
    has_remediation=False,
    stop_requested=False,
)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("move", ALL_MOVES)
def test_every_move_is_legal_or_refused_with_the_state(state: TaskState, move: Move) -> None:
    if (state, move) in MOVES:
        assert after(state, move) in {*STATES, "deleted"}
        return
    with pytest.raises(TaskStateError, match=f"This task is {state}") as refused:
        after(state, move)
    assert refused.value.extra == {"state": state}
    assert refused.value.http_status == 409


def test_what_has_ended_is_moved_by_a_person_or_by_its_remediation_alone() -> None:
    moves = {state: {move for known, move in MOVES if known == state} for state in TERMINAL}

    assert moves == {
        "completed": {"delete"},
        "cancelled": {"cancel", "resolve", "delete"},
        "dead-letter": {"retry", "resolve", "delete"},
        "failed": {"retry", "bury", "resolve", "delete"},
    }
    assert all((state, "delete") not in MOVES and (state, "resolve") not in MOVES for state in set(STATES) - TERMINAL)


@given(ATTEMPTS, st.none() | CAUSES)
def test_every_verdict_is_a_legal_move_and_a_task_that_was_asked_to_stop_is_cancelled(
    attempt: Attempt, cause: TaskErrorClass | None
) -> None:
    state = after(attempt.state, judge(attempt, cause).move)

    assert (state == "cancelled") == attempt.stop_requested


@given(ATTEMPTS, CAUSES)
def test_side_effects_of_a_user_s_task_are_repeated_only_after_its_remediation(
    attempt: Attempt, cause: TaskErrorClass
) -> None:
    attempt = replace(attempt, acted=True, is_remediation=False, has_remediation=False)

    verdict = judge(attempt, cause)

    assert attempt.contained or verdict.move != "requeue"


@given(ATTEMPTS, st.sampled_from(LASTING))
def test_lasting_causes_are_never_retried_by_themselves(attempt: Attempt, cause: TaskErrorClass) -> None:
    attempt = replace(attempt, is_remediation=False, has_remediation=False)

    assert judge(attempt, cause).move in {"fail", "bury"}


@given(ATTEMPTS, st.sampled_from(sorted(PASSING)))
def test_a_passing_cause_before_any_effect_waits_for_ever_and_costs_no_attempt(
    attempt: Attempt, cause: TaskErrorClass
) -> None:
    attempt = replace(attempt, acted=False, stop_requested=False)

    verdict = judge(attempt, cause)

    assert (verdict.move, verdict.raises_ceiling) == ("requeue", True)
    assert verdict.delay_s <= LONGEST_PAUSE_S


@given(ATTEMPTS, st.sampled_from(["timeout", "browser", "provider", "runner-lost", "infrastructure"]))
def test_a_contained_task_is_tried_again_to_its_ceiling_and_then_dead_lettered(
    attempt: Attempt, cause: TaskErrorClass
) -> None:
    attempt = replace(attempt, workflow=True, acted=True, is_remediation=False, stop_requested=False)

    verdict = judge(attempt, cause)

    assert verdict.move == ("requeue" if attempt.attempt < attempt.max_attempts else "bury")
    assert not verdict.raises_ceiling


@given(ATTEMPTS)
def test_a_task_that_kills_its_runners_ends_in_dead_letter_with_that_reason(attempt: Attempt) -> None:
    attempt = replace(attempt, attempt=attempt.max_attempts, stop_requested=False)

    verdict = judge(attempt, "runner-lost")

    assert verdict.move == "bury"
    assert "process that ran it was gone" in (verdict.explanation or "")


@given(ATTEMPTS, CAUSES)
def test_only_a_last_attempt_after_a_lost_runner_runs_alone(attempt: Attempt, cause: TaskErrorClass) -> None:
    verdict = judge(attempt, cause)

    last = attempt.attempt + 1 >= attempt.max_attempts
    assert verdict.alone == (verdict.move == "requeue" and cause == "runner-lost" and last)


@given(ATTEMPTS, CAUSES)
def test_a_remediation_retries_every_failure_and_never_files_another(attempt: Attempt, cause: TaskErrorClass) -> None:
    attempt = replace(attempt, is_remediation=True, stop_requested=False)

    verdict = judge(attempt, cause)

    assert not verdict.files_remediation
    assert verdict.move == "requeue" or (cause == "runner-lost" and attempt.attempt >= attempt.max_attempts)


@given(ATTEMPTS, CAUSES)
def test_a_task_that_fails_files_its_one_remediation_and_attempts_remain(
    attempt: Attempt, cause: TaskErrorClass
) -> None:
    attempt = replace(attempt, is_remediation=False, stop_requested=False)

    verdict = judge(attempt, cause)

    assert verdict.files_remediation == (verdict.move == "fail")
    if verdict.move == "fail":
        assert not attempt.has_remediation
        assert attempt.attempt < attempt.max_attempts
    if verdict.move == "bury":
        assert attempt.attempt >= attempt.max_attempts
        assert verdict.explanation


@given(st.integers(1, 8), st.lists(st.tuples(st.none() | CAUSES, st.booleans()), max_size=60), st.booleans())
def test_no_life_of_a_task_leaves_it_failed_while_attempts_remain(
    max_attempts: int, ends: list[tuple[TaskErrorClass | None, bool]], workflow: bool
) -> None:
    attempt = replace(PLAIN, max_attempts=max_attempts, workflow=workflow)
    spent = filed = 0
    for cause, acted in ends:
        verdict = judge(replace(attempt, acted=acted), cause)
        spent += not verdict.raises_ceiling
        state = after("running", verdict.move)
        if state in {"completed", "dead-letter"}:
            break
        if state == "failed":
            filed += 1
            # Its remediation ends, and sends it back.
            attempt = replace(attempt, has_remediation=True)
            state = after("failed", "retry")
        assert state == "queued"
        ceiling = attempt.max_attempts + verdict.raises_ceiling
        attempt = replace(attempt, attempt=attempt.attempt + 1, max_attempts=ceiling)
        assert attempt.attempt <= attempt.max_attempts

    assert filed <= 1
    assert spent <= max_attempts


@given(st.integers(1, 10_000))
def test_pauses_grow_and_are_bounded(attempt: int) -> None:
    assert 2 <= pause_s(attempt) <= pause_s(attempt + 1) <= LONGEST_PAUSE_S


@given(st.floats(0, 1e6), st.floats(1, 86_400), st.booleans())
def test_a_lost_attempt_is_stale_or_a_restart_or_a_lost_runner(ran_s: float, timeout_s: float, boot_gone: bool) -> None:
    cause = cause_of_loss(ran_s=ran_s, timeout_s=timeout_s, boot_gone=boot_gone)

    assert (cause == "stale") == (ran_s > timeout_s + STALE_AFTER_S)
    assert cause == "stale" or (cause == "restart") == boot_gone


@pytest.mark.parametrize(
    ("attempt", "cause", "verdict"),
    [
        (PLAIN, "stale", Verdict(move="fail", files_remediation=True)),
        (replace(PLAIN, source="self-update"), "stale", Verdict(move="fail", files_remediation=True)),
        (PLAIN, "timeout", Verdict(move="fail", files_remediation=True)),
        (PLAIN, "runner-lost", Verdict(move="requeue", delay_s=2)),
        (replace(PLAIN, acted=True), "restart", Verdict(move="fail", files_remediation=True)),
        (replace(PLAIN, attempt=9), "restart", Verdict(move="requeue", raises_ceiling=True)),
        (replace(PLAIN, has_remediation=True), "unknown", Verdict(move="requeue", delay_s=2)),
    ],
)
def test_what_follows_for_example(attempt: Attempt, cause: TaskErrorClass, verdict: Verdict) -> None:
    assert judge(attempt, cause) == verdict
