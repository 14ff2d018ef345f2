from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from popagent_task_runner.tasks.room import Room


@given(st.integers(1, 40), st.integers(1, 3), st.lists(st.integers(0, 2), max_size=200))
def test_whoever_creates_within_a_second_waiting_tasks_exceed_the_bound_by_nothing_alone_and_by_little_together(
    depth: int, processes: int, order: list[int]
) -> None:
    rooms = [Room(depth) for _ in range(processes)]
    waiting = counts = 0
    for number in order:
        room = rooms[number % processes]
        to_count = room.to_count("w")
        counts += to_count > 0
        if to_count == 0 or room.counted("w", min(waiting, to_count)):
            waiting += 1

    assert waiting <= depth + (processes - 1) * depth // 4
    assert waiting == min(len(order), depth) or processes > 1


def test_far_from_the_bound_hardly_any_task_is_counted_for() -> None:
    room = Room(1_000)
    counts = 0
    for waiting in range(500):
        if room.to_count("w"):
            counts += 1
            assert room.counted("w", waiting)

    assert counts < 10
