from __future__ import annotations

import asyncio

import pytest

from popagent_kit import tasks
from popagent_kit.errors import UnavailableError


async def test_a_task_that_swallows_a_cancellation_is_ended_all_the_same() -> None:
    swallowed = 0

    async def stubborn() -> None:
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                swallowed += 1
                if swallowed == 2:
                    raise

    task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)

    await tasks.end(task, None)

    assert task.cancelled()
    assert swallowed == 2


async def test_a_lasting_loop_outlives_errors_of_every_kind_and_ends_when_it_returns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tasks, "PAUSE_S", 0)
    errors = [KeyError("a defect"), UnavailableError("the server is away")]

    async def loop() -> None:
        if errors:
            raise errors.pop(0)

    task = tasks.lasting(loop, "the loop")
    await asyncio.wait_for(task, 5)

    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "the server is away" in caplog.text
    assert "a defect" in caplog.text


async def test_a_lasting_loop_is_ended_by_its_cancellation() -> None:
    task = tasks.lasting(lambda: asyncio.sleep(600), "the loop")
    await asyncio.sleep(0)

    await tasks.end(task)

    assert task.cancelled()


async def test_a_lasting_loop_whose_cleaning_up_fails_does_not_begin_again() -> None:
    began = 0

    async def loop() -> None:
        nonlocal began
        began += 1
        try:
            await asyncio.sleep(600)
        finally:
            raise UnavailableError("the server has gone before us")

    task = tasks.lasting(loop, "the loop")
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait_for(asyncio.wait([task]), 5)

    assert (task.done(), began) == (True, 1)
