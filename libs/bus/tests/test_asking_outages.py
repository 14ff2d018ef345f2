from __future__ import annotations

import asyncio
from time import perf_counter

import pytest

from popagent_bus import Bus, Handlers
from popagent_kit.errors import UnavailableError
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, Echo, EchoView, until

handlers: Handlers[None] = Handlers()


@handlers.answers(Echo)
async def echo(_: None, command: Echo) -> EchoView:
    return EchoView(text=command.text)


@pytest.fixture
async def gateway(connect_as: ConnectAs) -> Bus:
    chat = await connect_as("chat")
    await chat.serve(handlers, None)
    return await connect_as("gateway")


async def test_requests_wait_for_nats_and_go_on_after_its_restart(gateway: Bus, suite_nats: NatsServer) -> None:
    await gateway.ask(Echo(text="before"))
    suite_nats.kill()
    await until(lambda: not gateway.connected)
    asking = asyncio.create_task(gateway.ask(Echo(text="after")))
    await asyncio.sleep(0.3)
    suite_nats.start()

    assert (await asking).text == "after"
    assert gateway.state.problem() is None


async def test_while_nats_is_gone_a_question_is_refused_within_the_patience(
    gateway: Bus, suite_nats: NatsServer
) -> None:
    suite_nats.kill()
    await until(lambda: not gateway.connected)

    started = perf_counter()
    with pytest.raises(UnavailableError):
        await gateway.ask(Echo(text="x"), patience_s=0.5)
    with pytest.raises(UnavailableError):
        await gateway.publish("popagent.gateway.evt.tests-x.v1", b"{}", "id-1")

    assert perf_counter() - started < 2
    assert gateway.state.problem() == "not connected to NATS"
    suite_nats.start()
