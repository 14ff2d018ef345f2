from __future__ import annotations

from pathlib import Path

import httpx2
from fastapi.routing import APIRoute

from popagent_gateway.api import described, make_api
from popagent_gateway.export_openapi import main, rendered
from popagent_gateway.observed import route_of


def test_the_committed_document_is_what_the_routes_say() -> None:
    assert main(["--check"]) == 0


def test_a_stale_or_missing_document_is_told(tmp_path: Path) -> None:
    target = tmp_path / "openapi.json"

    missing = main(["--check"], target)
    written = main([], target)
    current = main(["--check"], target)
    target.write_bytes(rendered() + b" ")
    stale = main(["--check"], target)

    assert (missing, written, current, stale) == (1, 0, 0, 1)


def test_every_route_is_described_with_the_contracts_own_schemas() -> None:
    document = described()

    operations = {(method, path) for path, item in document["paths"].items() for method in item}
    routes = {
        (m.lower(), r.path)
        for r in make_api().routes
        if isinstance(r, APIRoute) and r.include_in_schema
        for m in r.methods
    }
    schemas = document["components"]["schemas"]
    assert operations == routes
    assert {"SessionView", "ChatRequest", "AgentRuntimePatch", "TraceView", "ErrorBody"} <= set(schemas)
    assert "titleLocked" in schemas["SessionView"]["properties"]
    assert "HTTPValidationError" not in str(document)


async def test_the_description_is_served_behind_the_door(http: httpx2.AsyncClient) -> None:
    answer = await http.get("/api/openapi.json")

    assert answer.json() == described()


def test_a_request_without_a_route_has_no_path_in_metrics() -> None:
    assert route_of({"type": "http", "path": "/api/sessions/secret-id"}) == "unmatched"
