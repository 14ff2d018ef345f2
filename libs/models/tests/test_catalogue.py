from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from popagent_models.catalogue import ASK_STARTING_S, MOST_MODELS, Catalogue, CatalogueView, is_well_formed, view_of
from popagent_models.client import ModelClient
from popagent_models.errors import ModelProviderError, UnknownModelError
from popagent_testing.model_server import ModelList, ModelServer


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def catalogue(client: ModelClient, clock: Clock) -> AsyncIterator[Catalogue]:
    made = Catalogue(client.upstream, clock=clock)
    yield made
    await made.close()


def asked(server: ModelServer) -> int:
    return sum(entry.path == "/v1/models" for entry in server.log)


async def test_the_list_is_asked_for_once_and_kept_for_a_minute(
    catalogue: Catalogue, server: ModelServer, clock: Clock
) -> None:
    server.models = ModelList(ids=("a", "b"), fields={"context_length": 4096}, delay_s=0.05)

    views = await asyncio.gather(*(catalogue.models() for _ in range(20)))
    clock.now += 59
    again = await catalogue.models()

    assert all(view == views[0] for view in [*views, again])
    assert (views[0].models, views[0].context_windows, views[0].known) == (("a", "b"), {"a": 4096, "b": 4096}, True)
    assert asked(server) == 1


async def test_after_a_minute_a_new_list_replaces_the_old(
    catalogue: Catalogue, server: ModelServer, clock: Clock
) -> None:
    await catalogue.models()
    server.models = ModelList(ids=("new",))
    clock.now += 61

    view = await catalogue.models()

    assert view.models == ("new",)


@pytest.mark.parametrize("trouble", [ModelList(status=503), ModelList(raw="<html>"), ModelList(raw='{"data": []}')])
async def test_an_outage_is_served_from_the_old_list_for_a_day_then_fails_open(
    catalogue: Catalogue, server: ModelServer, clock: Clock, trouble: ModelList
) -> None:
    await catalogue.models()
    server.models = trouble
    clock.now += 3600
    stale = await catalogue.models()
    clock.now += 24 * 3600
    gone = await catalogue.models()

    assert stale.models == ("scripted-model",)
    assert not gone.known
    assert gone.accepts("any/model:id")
    assert not gone.accepts("no blanks")
    assert not gone.accepts("x" * 201)


async def test_a_slow_server_delays_a_known_list_by_half_a_second_at_most(
    catalogue: Catalogue, server: ModelServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_models.catalogue.REFRESH_WAIT_S", 0.05)
    await catalogue.models()
    server.models = ModelList(ids=("new",), delay_s=0.3)
    clock.now += 61

    first = await catalogue.models()
    await server.until(lambda state: state.log[-1].outcome == "answered")
    while (second := await catalogue.models()).models != ("new",):
        await asyncio.sleep(0.01)

    assert (first.models, second.models) == (("scripted-model",), ("new",))
    assert asked(server) == 2


async def test_a_failure_is_not_repeated_at_once_and_warned_about_once_a_minute(
    catalogue: Catalogue, server: ModelServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server.models = ModelList(status=500)

    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert not (await catalogue.models()).known
        clock.now += 61
        await catalogue.models()

    assert asked(server) == 2
    assert len(caplog.records) == 2
    assert catalogue.last_error is not None


async def test_a_server_that_starts_beside_us_is_no_warning_until_it_had_its_time(
    client: ModelClient, server: ModelServer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    server.models = ModelList(status=503)
    catalogue = Catalogue(client.upstream, starting_s=120, clock=clock)

    with caplog.at_level(logging.INFO, "popagent_models.catalogue"):
        await catalogue.models()
        clock.now += 121
        await catalogue.models()
    await catalogue.close()

    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


async def test_without_a_model_url_any_well_formed_id_passes() -> None:
    catalogue = Catalogue(ModelClient(None).upstream)

    await catalogue.check("whatever")

    assert not (await catalogue.models()).known


async def test_an_unknown_model_is_refused_with_its_field(catalogue: Catalogue) -> None:
    await catalogue.check("scripted-model")

    with pytest.raises(UnknownModelError) as refused:
        await catalogue.check("unheard-of", field="model")

    assert (refused.value.http_status, refused.value.field) == (422, "model")


@pytest.mark.parametrize(
    ("value", "windows"),
    [
        ({"data": [{"id": "m", "context_length": 10}]}, {"m": 10}),
        ({"data": [{"id": "m", "context_window": 11}]}, {"m": 11}),
        ({"data": [{"id": "m", "max_model_len": 12}]}, {"m": 12}),
        ({"data": [{"id": "m", "n_ctx": 13}]}, {"m": 13}),
        ({"data": [{"id": "m", "meta": {"n_ctx_train": 14}}]}, {"m": 14}),
        ({"data": [{"id": "m", "top_provider": {"context_length": 15}}]}, {"m": 15}),
        ({"models": [{"name": "m"}]}, {}),
        (["m"], {}),
        ([{"id": "cx/gpt-5.3-codex-spark", "context_length": "many"}], {"cx/gpt-5.3-codex-spark": 128_000}),
    ],
)
def test_context_windows_are_found_under_every_name(value: object, windows: dict[str, int]) -> None:
    assert view_of(value, "host").context_windows == windows


@pytest.mark.parametrize("value", [None, 5, {}, {"data": "x"}, {"data": [{"id": ""}, {"id": 5}, {"id": "a b"}, None]}])
def test_what_is_not_a_list_of_models_is_an_error(value: object) -> None:
    with pytest.raises(ModelProviderError):
        view_of(value, "host")


def test_the_default_is_the_stored_one_then_the_configured_then_the_first_that_chats() -> None:
    view = CatalogueView(("text-embedding-3-small", "all-minilm-l6-v2", "qwen3"), known=True)

    assert view.default_model("stored", "configured") == "stored"
    assert view.default_model(None, "configured") == "configured"
    assert view.default_model(None) == "qwen3"
    assert CatalogueView(("nomic-embed-text",), known=True).default_model(None) is None


async def test_a_server_that_is_still_starting_is_waited_for(
    client: ModelClient, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_models.catalogue.ASK_STARTING_S", 0.02)
    starting = Catalogue(client.upstream)
    server.models = ModelList(status=503)

    waiting = asyncio.create_task(starting.wait_until_known(10))
    await server.until(lambda it: sum(entry.path == "/v1/models" for entry in it.log) >= 2)
    server.models = ModelList(ids=("ready",))
    view = await waiting
    await starting.close()

    assert view.models == ("ready",)


async def test_a_name_from_a_person_is_checked_as_soon_as_the_server_answers_again(
    catalogue: Catalogue, server: ModelServer, clock: Clock
) -> None:
    server.models = ModelList(status=503)
    await catalogue.check("anything")
    server.models = ModelList()
    clock.now += ASK_STARTING_S

    with pytest.raises(UnknownModelError):
        await catalogue.check("anything")


async def test_a_server_that_never_answers_is_not_waited_for_longer_than_our_own_callers_wait(
    catalogue: Catalogue, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_models.catalogue.FIRST_WAIT_S", 0.05)
    server.models = ModelList(delay_s=30)

    async with asyncio.timeout(3):
        view = await catalogue.models()
        await catalogue.check("anything")

    assert not view.known


async def test_models_beyond_the_listed_ones_may_be_used(catalogue: Catalogue, server: ModelServer) -> None:
    server.models = ModelList(ids=tuple(f"m{number}" for number in range(MOST_MODELS + 500)))

    await catalogue.check(f"m{MOST_MODELS + 499}")
    view = await catalogue.models()

    assert (len(view.models), len(view.unlisted)) == (MOST_MODELS, 500)
    with pytest.raises(UnknownModelError):
        await catalogue.check("m-none")


def test_ids_that_cannot_be_seen_are_no_ids() -> None:
    hidden = ("a\u202eb", "\u200b", "a\u2028b", "\x1b[31m", "a\x00", "a b", "")

    assert [model for model in hidden if is_well_formed(model)] == []
    assert view_of([*hidden, "good/model:1"], "host").models == ("good/model:1",)
