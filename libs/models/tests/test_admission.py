from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable

import asyncpg
import pytest

from popagent_kit.errors import RateLimitedError
from popagent_models.admission import Admission, Limit, lock_key
from popagent_models.client import ModelClient, Timeouts
from popagent_models.endpoint import endpoint
from popagent_testing.asking import ask, request
from popagent_testing.model_server import ModelServer, Reply

HOLDER = """
import asyncio, sys, asyncpg
from popagent_models.admission import Admission, Limit

async def main():
    admission = Admission((Limit("local", 1),), lambda: asyncpg.connect(sys.argv[1]))
    async with admission.slot("local"):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

Make = Callable[..., Admission]


@pytest.fixture
async def make(database: str) -> AsyncIterator[Make]:
    made: list[Admission] = []

    def build(calls: int = 1, **options: float) -> Admission:
        admission = Admission((Limit("local*", calls),), lambda: asyncpg.connect(database), **options)
        made.append(admission)
        return admission

    yield build
    for admission in made:
        await admission.close()


async def test_a_model_without_limit_waits_for_nothing_and_needs_no_database() -> None:
    async def refuse() -> asyncpg.Connection:
        raise AssertionError("no connection is needed")

    admission = Admission((Limit("local*", 1),), refuse)

    async with admission.slot("hosted") as waited, admission.slot("hosted") as waited_too:
        assert (waited, waited_too) == (0.0, 0.0)


async def test_eight_calls_of_two_processes_never_exceed_two_slots(make: Make) -> None:
    one, other = make(calls=2), make(calls=2)
    running = peak = 0

    async def call(admission: Admission) -> None:
        nonlocal running, peak
        async with admission.slot("local-model"):
            running += 1
            peak = max(peak, running)
            await asyncio.sleep(0.01)
            running -= 1

    await asyncio.gather(*(call(admission) for admission in (one, other) for _ in range(4)))

    assert (peak, running) == (2, 0)


async def test_a_killed_holder_frees_its_slot(make: Make, database: str) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, database, stdout=asyncio.subprocess.PIPE
    )
    assert holder.stdout is not None
    assert await holder.stdout.readline() == b"held\n"
    waiting = asyncio.create_task(_hold_briefly(make(), "local"))
    await asyncio.sleep(0.1)
    still_waiting = not waiting.done()

    holder.send_signal(signal.SIGKILL)
    await holder.wait()

    assert still_waiting
    assert await asyncio.wait_for(waiting, 5) > 0.05


async def _hold_briefly(admission: Admission, model: str) -> float:
    async with admission.slot(model) as waited:
        return waited


async def test_a_full_queue_and_a_long_wait_answer_with_retry_after(make: Make) -> None:
    admission = make(most_waiting=1, longest_wait_s=0.3)
    async with admission.slot("local"):
        waiting = asyncio.create_task(_hold_briefly(admission, "local"))
        await asyncio.sleep(0)

        with pytest.raises(RateLimitedError) as full:
            await _hold_briefly(admission, "local")
        with pytest.raises(RateLimitedError) as late:
            await waiting

    assert full.value.retry_after_s
    assert late.value.retry_after_s
    assert "0.3 s" in late.value.message


async def test_chat_goes_before_background(make: Make) -> None:
    admission = make()
    order: list[str] = []

    async def call(name: str, *, background: bool) -> None:
        async with admission.slot("local", background=background):
            order.append(name)

    async with admission.slot("local"):
        tasks = [asyncio.create_task(call(f"background {n}", background=True)) for n in range(2)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(call(f"chat {n}", background=False)) for n in range(2)]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)

    assert order == ["chat 0", "chat 1", "background 0", "background 1"]


async def test_cancelling_one_that_waits_or_holds_leaves_no_slot_behind(make: Make, database: str) -> None:
    admission = make()
    for delay_s in (0, 0.001, 0.003, 0.01, 0.03) * 4:
        task = asyncio.create_task(_hold_for_ever(admission))
        await asyncio.sleep(delay_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    waited = await asyncio.wait_for(_hold_briefly(admission, "local"), 5)

    assert waited < 2
    assert await _locks(database) == 0


async def _hold_for_ever(admission: Admission) -> None:
    async with admission.slot("local"):
        await asyncio.Event().wait()


async def _locks(database: str) -> int:
    connection = await asyncpg.connect(database)
    try:
        query = "select count(*) from pg_locks where locktype = 'advisory' and classid = $1"
        return int(await connection.fetchval(query, lock_key("local") % 2**32))
    finally:
        await connection.close()


async def test_a_broken_connection_is_made_again_and_the_held_slot_with_it(make: Make, database: str) -> None:
    admission, other = make(calls=2), make(calls=2, longest_wait_s=0.3)
    async with admission.slot("local"):
        connection = await asyncpg.connect(database)
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
        await connection.close()

        async with admission.slot("local"):
            assert await _locks(database) == 2
            with pytest.raises(RateLimitedError):
                await _hold_briefly(other, "local")

    assert await _locks(database) == 0


async def test_without_a_database_the_limit_holds_within_the_process() -> None:
    async def refuse() -> asyncpg.Connection:
        raise OSError("no database")

    admission = Admission((Limit("local", 1),), refuse, longest_wait_s=0.2)

    async with admission.slot("local"):
        with pytest.raises(RateLimitedError):
            await _hold_briefly(admission, "local")
    assert await _hold_briefly(admission, "local") < 0.2


async def test_the_queue_does_not_eat_the_header_timeout(make: Make) -> None:
    admission = make()
    with ModelServer() as server:
        client = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=1), admission=admission)
        server.script(Reply(text="first", hold=True), Reply(text="second"))
        first = asyncio.create_task(ask(client, request(model="local")))
        await server.until(lambda state: state.held == 1)
        second = asyncio.create_task(ask(client, request(model="local")))
        await asyncio.sleep(1.2)
        server.release()

        assert ((await first).text, (await second).text) == ("first", "second")
        await client.close()
