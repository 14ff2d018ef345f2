from __future__ import annotations

import asyncio
import time

import httpx2
import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool
from popagent_gateway.suite_health import summed_up
from popagent_gateway.wiring import Gateway
from popagent_kit.remedies import remedy_for_check
from popagent_proto.common import HEALTH_QUERIES, ChatHealth, HealthView, ObservabilityHealth

from .conftest import HERE, Owner, make_settings, own_health


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
    assert body["checks"] == {
        "postgres": "chat does not answer",
        "observability-postgres": "observability does not answer",
        "model": "chat does not answer",
        "search": "chat does not answer",
    }
    told = [problem["name"] for problem in body["problems"]]
    assert {"chat", "observability", "scheduler"} <= set(told)
    assert len(told) == len(set(told))


async def test_the_model_is_told_and_never_decides(http: httpx2.AsyncClient, chat: Owner, observability: Owner) -> None:
    well = HealthView(
        service="chat", version="t", ready=True, checks={"postgres": "ok", "model": "ok"}, details={"model": "m, at h"}
    )
    observability.answer(ObservabilityHealth, view("observability", postgres="ok"))
    chat.answer(ChatHealth, well)
    with_model = await http.get("/api/health")
    chat.answer(ChatHealth, view("chat", postgres="ok", model="No model is connected."))

    without = await http.get("/api/health")

    assert (with_model.json()["checks"]["model"], with_model.json()["details"]) == ("ok", {"model": "m, at h"})
    assert (without.status_code, without.json()["checks"]["model"]) == (200, "No model is connected.")
    [problem] = [each for each in without.json()["problems"] if each["name"] == "model"]
    assert (problem["reason"], problem["decisive"]) == ("No model is connected.", False)
    assert "POPAGENT_MODEL_URL" in problem["fix"]


async def test_a_search_that_fails_is_told_and_one_that_nobody_set_up_is_no_problem(
    http: httpx2.AsyncClient, chat: Owner, observability: Owner
) -> None:
    observability.answer(ObservabilityHealth, view("observability", postgres="ok"))
    chat.answer(ChatHealth, view("chat", postgres="ok", model="ok", search="SearXNG gives no JSON."))
    failing = await http.get("/api/health")
    chat.answer(ChatHealth, view("chat", postgres="ok", model="ok", search="not set up: none at 127.0.0.1:8889"))

    absent = await http.get("/api/health")

    problems = [[each["name"] for each in answer.json()["problems"]] for answer in (failing, absent)]
    assert (failing.status_code, absent.status_code) == (200, 200)
    assert failing.json()["checks"]["search"] == "SearXNG gives no JSON."
    assert absent.json()["checks"]["search"].startswith("not set up")
    assert ["search" in each for each in problems] == [True, False]
    [problem] = [each for each in failing.json()["problems"] if each["name"] == "search"]
    assert (problem["decisive"], "docs/web-search.md" in problem["fix"]) == (False, True)


def test_a_trouble_that_many_notice_is_told_once_the_deciding_one_first() -> None:
    away = "The database does not answer: refused"
    services = [
        HealthView(service="gateway", version="t", ready=False, checks={"postgres": away, "nats": "ok"}),
        HealthView(service="chat", version="t", ready=False, checks={"model": "None.", "postgres": away}),
        HealthView(service="scheduler", version="", ready=False, checks={"bus": "scheduler does not run."}),
        HealthView(service="task-runner", version="t", ready=False, checks={"service": "stopping"}),
        HealthView(service="observability", version="t", ready=False, checks={"postgres": away}),
    ]

    found = summed_up(services)

    assert [(each.name, each.services, each.decisive) for each in found.problems] == [
        ("postgres", ["gateway", "chat"], True),
        ("observability-postgres", ["observability"], True),
        ("scheduler", ["scheduler"], False),
        ("model", ["chat"], False),
        ("service", ["task-runner"], False),
    ]
    assert all(each.still_works and each.fix.endswith(".") for each in found.problems)
    assert found.problems[0].fix == remedy_for_check("postgres").fix
    assert "logs scheduler" in found.problems[2].fix
    assert not found.ready


async def test_without_the_key_health_is_401_so_that_a_page_knows_to_ask_for_one(bus: Bus, pool: Pool) -> None:
    gateway = Gateway(make_settings(api_key="the-key"), bus, pool, own_health)

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(gateway.app), base_url=HERE) as http:
        answer = await http.get("/api/health")

    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    assert "x-popagent-key" in answer.json()["error"]
