"""Prompts that are read ahead, while nobody asks."""

from __future__ import annotations

import asyncio

import httpx2
from starlette.responses import JSONResponse

from libs.local.tests.model_server.asking import ASK, READ, said, stream_of
from libs.local.tests.model_server.listener import Listener


async def test_a_prompt_is_read_ahead_as_the_next_question_begins(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    body = {**ASK, "tools": [READ]}

    ahead = await client.post("/v1/warm-up", json=body)
    listener.decision = ['{"tool": "none"}']
    await stream_of(client, body)

    warm, question, _ = listener.asked
    assert ahead.json() == {"read": True}
    assert warm["messages"] == question["messages"]
    assert warm["max_tokens"] == 1
    assert (await client.get("/health")).json()["warmUp"] == {"reads": False, "tokensRead": 9}


async def test_reading_ahead_stops_when_somebody_asks(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.silent = True
    reading = asyncio.create_task(client.post("/v1/warm-up", json=ASK))
    await listener.arrived.wait()
    during = (await client.get("/health")).json()["warmUp"]
    listener.silent, listener.words = False, ["Hello"]

    events, _ = await stream_of(client, ASK)
    await listener.hung_up.wait()

    assert said(events) == "Hello"
    assert during == {"reads": True, "tokensRead": 0}
    assert (await reading).json() == {"read": False}


async def test_reading_ahead_stops_when_its_client_leaves(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.silent = True
    reading = asyncio.create_task(client.post("/v1/warm-up", json=ASK))
    await listener.arrived.wait()

    reading.cancel()
    await listener.hung_up.wait()

    async with asyncio.timeout(5):
        while (await client.get("/health")).json()["warmUp"]["reads"]:
            await asyncio.sleep(0.01)


async def test_what_cannot_be_read_ahead_is_an_error(client: httpx2.AsyncClient, listener: Listener) -> None:
    listener.error = JSONResponse({"error": {"message": "too long"}}, 400)

    refused = await client.post("/v1/warm-up", json=ASK)
    unknown = await client.post("/v1/warm-up", json={**ASK, "model": "other"})

    assert (refused.status_code, unknown.status_code) == (503, 404)


async def test_nothing_is_read_ahead_while_a_question_is_answered(
    client: httpx2.AsyncClient, listener: Listener
) -> None:
    listener.words, listener.go = ["Hello"], asyncio.Semaphore(0)
    answering = asyncio.create_task(stream_of(client, ASK))
    await listener.arrived.wait()

    during = await client.post("/v1/warm-up", json=ASK)
    listener.go.release()
    await answering
    listener.go.release()
    after = await client.post("/v1/warm-up", json=ASK)

    assert [answer.json() for answer in (during, after)] == [{"read": False}, {"read": True}]
