"""Every route there is, against what the door refuses of all of them; none is listed by hand, so none is forgotten."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from fastapi.routing import APIRoute
from pydantic import BaseModel

from popagent_gateway.api import make_api
from popagent_gateway.bodies import BODY_BYTES, LARGE_BODIES, UPLOAD
from popagent_kit import json
from popagent_kit.errors import (
    AppError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
    RevisionConflictError,
    UnavailableError,
)
from popagent_proto.matrix import SERVICES

from .conftest import Owner, requests_of, start_owner
from .test_routes import ODD_IDS

EXAMPLES: Final = Path(__file__).parents[3] / "proto" / "examples"
READS: Final = frozenset({"GET", "HEAD"})
JSON: Final = {"content-type": "application/json"}
Call = tuple[str, APIRoute]


def calls(*, changes: bool) -> Iterator[Call]:
    """Yield (method, route) of everything below /api that changes something, or of everything else."""
    for route in make_api().routes:
        if isinstance(route, APIRoute):
            yield from ((method, route) for method in sorted(route.methods) if (method not in READS) is changes)


CHANGES: Final = list(calls(changes=True))
EVERYTHING: Final = [*calls(changes=False), *CHANGES]
# All others take JSON; what else these refuse is tested beside the upload itself.
UPLOADS: Final = [call for call in CHANGES if UPLOAD.fullmatch(call[1].path)]
TAKES_JSON: Final = [call for call in CHANGES if call not in UPLOADS]
FILE: Final[dict[str, Any]] = {"content": b"# Herons", "headers": {"content-type": "text/markdown"}}


def name(call: Call) -> str:
    return f"{call[0]} {call[1].path}"


def filled(route: APIRoute, odd: str | None = None, at: int = 0) -> str:
    """Return the path with ids that may be; the one at `at` is `odd`, if that is given."""
    places = iter(range(10))

    def one(_: re.Match[str]) -> str:
        return odd if odd is not None and next(places) == at else "known"

    return re.sub(r"\{\w+\}", one, route.path)


def ids_in(route: APIRoute) -> int:
    return len(re.findall(r"\{\w+\}", route.path))


STRANGERS: Final[list[tuple[dict[str, str], int, str]]] = [
    ({"host": "evil.example"}, 421, "misdirected"),
    ({"origin": "https://evil.example", "content-type": "text/plain"}, 403, "forbidden"),
    ({"origin": "null"}, 403, "forbidden"),
    ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, 403, "forbidden"),
]
NO_OBJECTS: Final[list[tuple[bytes, dict[str, str], int, str]]] = [
    (b"{", JSON, 400, "malformed_json"),
    (b'{"a":NaN}', JSON, 400, "malformed_json"),
    (b"[" * 100_000, JSON, 400, "malformed_json"),
    (b'{"a":"\\ud800"}', JSON, 400, "malformed_json"),
    (b'{"path":"/etc/passwd"}', {"content-type": "text/plain"}, 415, "unsupported_media_type"),
    (b"a=b", {"content-type": "multipart/form-data; boundary=x"}, 415, "unsupported_media_type"),
    (b"{}", {**JSON, "content-encoding": "gzip"}, 415, "unsupported_media_type"),
    (b"[]", JSON, 422, "invalid_input"),
    (b'"text"', JSON, 422, "invalid_input"),
    (b"1", JSON, 422, "invalid_input"),
    (b'{"noSuchField":"a\\u0000b"}', JSON, 422, "invalid_input"),
]
# What an owner says, and how the door tells it: the status and when to come back.
SAID: Final[list[tuple[AppError, int, str | None]]] = [
    (NotFoundError(), 404, None),
    (ConflictError("It runs."), 409, None),
    (RevisionConflictError(extra={"stored": {"id": "known"}}), 409, None),
    (InvalidInputError("model: is not offered", field="model"), 422, None),
    (RateLimitedError("Slow down.", retry_after_s=2.3), 429, "3"),
    (UnavailableError("Gone."), 503, "1"),
]
# What the golden examples of these contracts cannot show: of several fields only some may stand together.
WHOLE_BODIES: Final[dict[str, Any]] = {
    "ChatRequest": {"id": "s1", "message": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}},
    "AddWorkspaceBody": {"path": "mine", "name": "Mine"},
    "ScheduleChanges": {"revision": 0, "name": "Daily"},
    "CreatePageBody": {"path": "herons.md", "body": "Grey."},
    "WritePageBody": {"path": "herons.md", "body": "Grey.", "revision": "0" * 64},
    "MoveBody": {"path": "herons.md", "to": "birds.md"},
}


WHOLE_QUERIES: Final = {
    "path": "herons.md",
    "revision": "0" * 64,
    "name": "herons.md",
    "q": "heron",
    "topics": "tasks",
    "cron": "@daily",
}


def required_query(route: APIRoute) -> Iterator[str]:
    """Yield what must stand in the query of this route."""
    for param in route.dependant.query_params:
        kind = param.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from (field.alias or name for name, field in kind.model_fields.items() if field.is_required())
        elif param.field_info.is_required():
            yield param.alias


def whole(route: APIRoute) -> Any:
    """Return a body that this route takes, None where it takes none."""
    if route.body_field is None:
        return None
    kind = route.body_field.field_info.annotation
    assert isinstance(kind, type)
    return WHOLE_BODIES.get(kind.__name__) or json.loads((EXAMPLES / f"{kind.__name__}.json").read_bytes())


@pytest.fixture
async def owners(nats_url: str) -> AsyncIterator[list[Owner]]:
    """Every service behind the door; each answers nothing until a test tells it what."""
    others = [row.name for row in SERVICES if row.name != "gateway"]
    started = [await start_owner(nats_url, service, requests_of(service)) for service in others]
    yield started
    for owner in started:
        await owner.bus.drain()


async def told(http: httpx2.AsyncClient, calls: list[Call], **request: Any) -> dict[str, httpx2.Response]:
    """Send the same to every route and return the answers by route."""
    return {name(call): await http.request(call[0], filled(call[1]), **request) for call in calls}


def body_of(call: Call) -> dict[str, Any]:
    """Return what the route takes, as a request is given it."""
    body = whole(call[1])
    return FILE if call in UPLOADS else {} if body is None else {"json": body}


async def whole_request(http: httpx2.AsyncClient, call: Call, odd: str | None = None, at: int = 0) -> httpx2.Response:
    """Send what the route takes; one of its ids may be odd."""
    query = {asked: WHOLE_QUERIES[asked] for asked in required_query(call[1])}
    path = filled(call[1], odd, at)
    return await http.request(call[0], path, params=query, **body_of(call))


def refusals(answers: dict[str, httpx2.Response]) -> dict[str, tuple[int, str]]:
    return {route: (answer.status_code, answer.json()["code"]) for route, answer in answers.items()}


def test_changes_are_found() -> None:
    assert len(CHANGES) > 30
    assert {"POST /api/chat", "DELETE /api/tasks/{id}", "PUT /api/channels/{id}/read"} <= set(map(name, CHANGES))


async def test_no_route_answers_another_name_or_another_page(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    for headers, status, code in STRANGERS:
        answers = await told(http, EVERYTHING, headers=headers)

        assert refusals(answers) == dict.fromkeys(map(name, EVERYTHING), (status, code)), headers
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_change_takes_what_is_no_json_object(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    for content, headers, status, code in NO_OBJECTS:
        answers = await told(http, TAKES_JSON, content=content, headers=headers)

        assert refusals(answers) == dict.fromkeys(map(name, TAKES_JSON), (status, code)), content[:40]
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_change_takes_a_larger_body_than_it_accepts(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    answers = {}
    for method, route in TAKES_JSON:
        limit = next((limit for path, limit in LARGE_BODIES if path.fullmatch(filled(route))), BODY_BYTES)
        body = b"{}" + b" " * (limit - 1)
        answers[name((method, route))] = await http.request(method, filled(route), content=body, headers=JSON)

    assert refusals(answers) == dict.fromkeys(map(name, TAKES_JSON), (413, "too_large"))
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_change_passes_over_a_field_that_it_does_not_know(
    http: httpx2.AsyncClient, owners: list[Owner]
) -> None:
    answers = {}
    for method, route in TAKES_JSON:
        body = {**(whole(route) or {}), "noSuchField": 1}
        answers[name((method, route))] = await http.request(method, filled(route), json=body)

    fields = {route: (answer.status_code, answer.json().get("field")) for route, answer in answers.items()}
    assert fields == {name(call): (422, "body" if call[1].body_field is None else "noSuchField") for call in TAKES_JSON}
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_route_passes_over_a_query_that_it_does_not_know(
    http: httpx2.AsyncClient, owners: list[Owner]
) -> None:
    query = {"noSuchField": "1"}
    answers = await told(http, [call for call in EVERYTHING if call not in UPLOADS], params=query)
    answers |= await told(http, UPLOADS, params=query, **FILE)

    fields = {route: (answer.status_code, answer.json().get("field")) for route, answer in answers.items()}
    assert fields == dict.fromkeys(map(name, EVERYTHING), (422, "noSuchField"))
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_route_asks_anybody_for_an_id_that_cannot_be(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    answers = {
        (name(call), at, odd): await whole_request(http, call, odd, at)
        for call in EVERYTHING
        for at in range(ids_in(call[1]))
        for odd in ODD_IDS
    }

    assert {key: (answer.status_code, answer.json()["code"]) for key, answer in answers.items()} == dict.fromkeys(
        answers, (404, "not_found")
    )
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_no_change_takes_a_key_of_repetition_that_is_none(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    twice = {}
    keys = [("idempotency-key", "k1"), ("idempotency-key", "k2")]
    for call in CHANGES:
        body = {"json": {}} | body_of(call)
        headers = [*body.pop("headers", {}).items(), *keys]
        if call in UPLOADS:
            del body["json"]
        twice[name(call)] = await http.request(call[0], filled(call[1]), headers=headers, **body)

    assert refusals(twice) == dict.fromkeys(map(name, CHANGES), (422, "invalid_input"))
    assert [owner.asked for owner in owners if owner.asked] == []


async def test_what_an_owner_refuses_is_told_by_every_change(http: httpx2.AsyncClient, owners: list[Owner]) -> None:
    for error, status, retry_after in SAID:
        for owner in owners:
            for message in requests_of(owner.bus.service):
                owner.answer(message, error)

        answers = {name(call): await whole_request(http, call) for call in CHANGES}

        seen = {key: (answer.status_code, answer.headers.get("retry-after")) for key, answer in answers.items()}
        assert seen == dict.fromkeys(map(name, CHANGES), (status, retry_after))
        field = {} if error.field is None else {"field": error.field}
        body = {**error.extra, "error": error.message, "code": error.code, **field}
        assert {key: answer.json() for key, answer in answers.items()} == dict.fromkeys(answers, body)


async def test_without_its_owner_every_change_is_503_and_says_when_to_come_back(http: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(whole_request(http, call) for call in CHANGES))

    assert {(answer.status_code, answer.headers.get("retry-after")) for answer in answers} == {(503, "1")}
