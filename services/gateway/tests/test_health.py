from __future__ import annotations

import asyncio
import time

import httpx2
import pytest

from popagent_proto.common import HEALTH_QUERIES, ChatHealth, HealthView, ObservabilityHealth

from .conftest import Owner


def view(service: str, **checks: str) -> HealthView:
    return HealthView(service=service, version="test", ready=False, checks=checks)


@pytest.mark.parametrize(
    ("chat_says", "observability_says", "status"),
    [
        ({"postgres": "ok"}, {"postgres": "ok"}, 200),
        ({"postgres": "ok", "model": "no answer", "search": "no answer"}, {"postgres": "ok", "bus": "odd"}, 200),
        ({"postgres": "connection refused"}, {"postgres": "ok"}, 503),
        ({"postgres": "ok"}, {"postgres": "connection refused"}, 503),
        ({}, {"postgres": "ok"}, 503),
    ],
)
async def test_only_the_two_databases_decide(
    http: httpx2.AsyncClient,
    chat: Owner,
    observability: Owner,
    chat_says: dict[str, str],
    observability_says: dict[str, str],
    status: int,
) -> None:
    chat.answer(ChatHealth, view("chat", **chat_says))
    observability.answer(ObservabilityHealth, view("observability", **observability_says))

    answer = await http.get("/api/health")

    assert (answer.status_code, answer.json()["ready"]) == (status, status == 200)
    assert [service["service"] for service in answer.json()["services"]] == list(HEALTH_QUERIES)
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)


async def test_a_service_that_is_away_or_hangs_is_named_within_moments(http: httpx2.AsyncClient, chat: Owner) -> None:
    released = asyncio.Event()

    async def hang(_: object) -> HealthView:
        await released.wait()
        return view("chat", postgres="ok")

    chat.answer(ChatHealth, hang)

    began = time.monotonic()
    answers = await asyncio.gather(*(http.get("/api/health") for _ in range(20)))
    took_s = time.monotonic() - began
    released.set()

    body = answers[0].json()
    by_name = {service["service"]: service for service in body["services"]}
    assert took_s < 2.5
    assert len(chat.asked) == 1
    assert {answer.status_code for answer in answers} == {503}
    assert "did not answer" in by_name["chat"]["checks"]["bus"]
    assert "does not run" in by_name["scheduler"]["checks"]["bus"]
    assert by_name["gateway"]["ready"] is True
    assert set(body["checks"]) == {"postgres", "observability-postgres"}
