from __future__ import annotations

import httpx2

from popagent_gateway.door import REFUSALS
from popagent_gateway.observed import OPEN
from popagent_telemetry import metrics


def value(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


async def test_rate_errors_and_duration_are_counted_by_route_template(http: httpx2.AsyncClient) -> None:
    known = {"method": "GET", "route": "/api/observability/traces/{id}", "status": "404"}
    unknown = {"method": "GET", "route": "unmatched", "status": "404"}
    odd = {"method": "other", "route": "unmatched", "status": "404"}
    before = [value("popagent_http_requests_total", **labels) for labels in (known, unknown, odd)]
    seconds = value("popagent_http_request_seconds_count", method="GET", route="/api/observability/traces/{id}")

    for trace_id in ("one", "two", "three"):
        await http.get(f"/api/observability/traces/{trace_id}")
    await http.get("/api/nothing/with/an/id")
    await http.request("BREW", "/api/tea")

    after = [value("popagent_http_requests_total", **labels) for labels in (known, unknown, odd)]
    assert [new - old for new, old in zip(after, before, strict=True)] == [3, 1, 1]
    assert value("popagent_http_request_seconds_count", method="GET", route=known["route"]) - seconds == 3
    assert OPEN._value.get() == 0
    assert "with/an/id" not in metrics.render().decode()


async def test_refusals_are_counted_by_reason(http: httpx2.AsyncClient) -> None:
    before = REFUSALS.labels("misdirected")._value.get()

    await http.get("/api/models", headers={"host": "evil.example"})

    assert REFUSALS.labels("misdirected")._value.get() - before == 1
