"""The door seals a key before it travels, and asks for nothing but what its owner is to know."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import pytest

from popagent_kit import sealing
from popagent_kit.errors import ConflictError
from popagent_proto.chat import models
from popagent_proto.chat.secrets import MODEL_KEY_PURPOSE, GetSealingKey, SealingKeyView
from popagent_proto.chat.workspaces import ListWorkspaceCandidates, WorkspaceCandidate, WorkspaceCandidates

from .conftest import Owner, Served

PRIVATE = bytes(range(32))
KEY = "sk-of-a-person-7f3a"
URL = "http://127.0.0.1:11434/v1"
PATH = "/api/models/connection"
VIEW = models.ModelConnectionView(
    source="page",
    url=URL,
    has_key=True,
    key_hint="7f3a",
    model="m",
    last_error=None,
    embedded=models.EmbeddedModelView(available=False, model=None, note="None."),
    revision=4,
)
TESTED = models.ConnectionTestView.model_validate(
    {"ok": True, "class": "ok", "sentence": "It answers.", "models": ["m"], "modelCount": 1, "latencyMs": 3}
    | {"answeredBy": "m"}
)


@pytest.fixture
def keeper(chat: Owner) -> Owner:
    chat.answer(GetSealingKey, SealingKeyView(public_key=sealing.public_half(PRIVATE)))
    chat.answer(models.GetModelConnection, VIEW)
    chat.answer(models.PutModelConnection, VIEW)
    chat.answer(models.DropModelConnection, VIEW)
    chat.answer(models.AskModelConnection, TESTED)
    return chat


async def test_a_key_travels_sealed_and_comes_back_as_a_hint(
    http: httpx2.AsyncClient, keeper: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    saved = await http.put(PATH, json={"revision": 3, "url": URL, "key": KEY}, headers={"idempotency-key": "once"})
    put = keeper.last()
    tested = await http.post(f"{PATH}/test", json={"url": URL, "key": KEY, "model": "m"})
    ask = keeper.last()

    assert (saved.status_code, saved.json()) == (200, VIEW.wire())
    assert (put.command_id, put.revision, put.url) == ("once", 3, URL)
    assert [sealing.opened(PRIVATE, each.sealed_key, MODEL_KEY_PURPOSE) for each in (put, ask)] == [KEY, KEY]
    assert (tested.json()["class"], ask.model) == ("ok", "m")
    assert KEY not in saved.text + tested.text + caplog.text + repr([each.wire() for each in keeper.asked])


async def test_an_absent_key_stays_absent_and_null_stays_null(http: httpx2.AsyncClient, keeper: Owner) -> None:
    await http.put(PATH, json={"revision": 3, "url": URL})
    kept = keeper.last()
    await http.put(PATH, json={"revision": 3, "url": URL, "key": None})
    removed = keeper.last()
    await http.post(f"{PATH}/test", json={"url": URL})
    own = keeper.last()

    assert "sealed_key" not in kept.model_fields_set
    assert ("sealed_key" in removed.model_fields_set, removed.sealed_key) == (True, None)
    assert own.model_fields_set == {"url"}
    assert not [each for each in keeper.asked if isinstance(each, GetSealingKey)]


async def test_the_connection_is_read_and_forgotten(http: httpx2.AsyncClient, keeper: Owner) -> None:
    assert (await http.get(PATH)).json() == VIEW.wire()
    assert (await http.delete(PATH)).status_code == 200
    assert isinstance(keeper.last(), models.DropModelConnection)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": URL}, "revision"),
        ({"revision": 0}, "url"),
        ({"revision": 0, "url": ""}, "url"),
        ({"revision": 0, "url": "x" * 2_001}, "url"),
        ({"revision": 0, "url": URL, "key": ""}, "key"),
        ({"revision": 0, "url": URL, "key": f" {KEY}"}, "key"),
        ({"revision": 0, "url": URL, "key": f"{KEY}\r\nx: y"}, "key"),
        ({"revision": 0, "url": URL, "key": "ключ-of-a-person"}, "key"),
        ({"revision": 0, "url": URL, "key": "x" * 4_097}, "key"),
        ({"revision": 0, "url": URL, "key": 5}, "key"),
        ({"revision": 0, "url": URL, "sealedKey": "AAAA"}, "sealedKey"),
    ],
)
async def test_another_shape_is_refused_without_repeating_the_key(
    http: httpx2.AsyncClient, keeper: Owner, body: dict[str, Any], field: str
) -> None:
    answer = await http.put(PATH, json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)
    assert not any(word in answer.text for word in (KEY, "ключ"))
    assert keeper.asked == []


async def test_who_can_keep_no_secret_says_so(http: httpx2.AsyncClient, keeper: Owner) -> None:
    keeper.answer(GetSealingKey, ConflictError("POPAGENT_SECRET_KEY is not set."))

    answer = await http.put(PATH, json={"revision": 3, "url": URL, "key": KEY})

    assert (answer.status_code, answer.json()["error"]) == (409, "POPAGENT_SECRET_KEY is not set.")


async def test_the_door_never_lets_its_own_port_be_looked_at(served: Served, chat: Owner) -> None:
    chat.answer(models.DetectModelServers, models.DetectedServers(items=[]))

    answer = await served.http.get("/api/models/detect")

    assert answer.json() == {"items": [], "nextCursor": None}
    assert served.server.port in chat.last().own_ports


async def test_candidates_are_read_from_their_owner(http: httpx2.AsyncClient, chat: Owner) -> None:
    found = WorkspaceCandidates(items=[WorkspaceCandidate(path="a", is_repository=True, branch="main")], complete=True)
    chat.answer(ListWorkspaceCandidates, found)

    assert (await http.get("/api/workspaces/candidates")).json() == found.wire()
