"""The model source chooses the endpoint of later runs; a run that has begun keeps its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from pydantic import SecretStr

from popagent_chat.secrets.keyring import Keyring
from popagent_models import catalogue
from popagent_models.errors import NOT_CONNECTED, ModelConfigurationError, UnknownModelError
from popagent_models.events import TextDelta
from popagent_models.request import ModelRequest
from popagent_models.settings import ModelSettings
from popagent_proto.chat.settings import ModelSource
from popagent_runs.models.choice import NAME, RESOURCE, ModelChoice, StoredConnection
from popagent_runs.models.gateway import LOADING, ModelGateway, RoutedModel
from popagent_runs.models.settings import LocalModelSettings
from popagent_testing.model_server import ModelList, ModelServer
from popagent_testing.runtime_settings import agent_runtime

KEYRING = Keyring(bytes(range(32)))


def choice(source: ModelSource, url: str | None = None, key: str | None = None) -> ModelChoice:
    sealed = KEYRING.seal(SecretStr(key), RESOURCE, NAME).hex() if key else None
    return ModelChoice(agent_runtime(model_source=source), StoredConnection(url=url, revision=1, sealed=sealed))


@pytest.fixture
def servers() -> Iterator[tuple[ModelServer, ModelServer]]:
    with ModelServer() as router, ModelServer() as embedded:
        router.models = ModelList(ids=("big-model",))
        embedded.models = ModelList(ids=("small-model",))
        yield router, embedded


@pytest.fixture
async def gateway(servers: tuple[ModelServer, ModelServer]) -> AsyncIterator[ModelGateway]:
    router, embedded = servers
    made = ModelGateway(ModelSettings(model_url=router.url), LocalModelSettings(url=embedded.url), KEYRING)
    yield made
    await made.close()


async def chosen(gateway: ModelGateway, source: ModelSource) -> tuple[str, str]:
    routed = await gateway.route(choice(source), override=None, override_is_seeded=True, request=None)
    assert routed.client.endpoint is not None
    return routed.route.model, routed.client.endpoint.url


@pytest.mark.parametrize(
    ("source", "model", "server"), [("auto", "big-model", 0), ("router", "big-model", 0), ("local", "small-model", 1)]
)
async def test_the_source_chooses_endpoint_and_model(
    source: ModelSource, model: str, server: int, gateway: ModelGateway, servers: tuple[ModelServer, ModelServer]
) -> None:
    assert await chosen(gateway, source) == (model, servers[server].url)


async def test_another_source_for_later_runs_leaves_a_running_one_where_it_is(gateway: ModelGateway) -> None:
    before = await gateway.route(choice("router"), override=None, override_is_seeded=True, request=None)
    endpoint = before.client.endpoint

    await gateway.route(choice("local"), override=None, override_is_seeded=True, request=None)

    assert before.client.endpoint == endpoint


async def test_a_model_is_checked_against_the_source_it_will_be_used_with(gateway: ModelGateway) -> None:
    await gateway.require_known("small-model", choice("local"), field="defaultModel")

    with pytest.raises(UnknownModelError):
        await gateway.require_known("small-model", choice("router"), field="defaultModel")


async def test_a_source_without_an_address_says_what_to_set() -> None:
    gateway = ModelGateway(ModelSettings(), LocalModelSettings(), KEYRING)

    with pytest.raises(ModelConfigurationError, match="POPAGENT_MODEL_URL"):
        await gateway.route(choice("auto"), override=None, override_is_seeded=True, request="any-model")
    await gateway.close()


@pytest.fixture
async def page(servers: tuple[ModelServer, ModelServer]) -> AsyncIterator[ModelGateway]:
    """No address in the environment; the embedded model runs."""
    made = ModelGateway(ModelSettings(), LocalModelSettings(url=servers[1].url), KEYRING)
    yield made
    await made.close()


async def routed(gateway: ModelGateway, chosen: ModelChoice) -> RoutedModel:
    return await gateway.route(chosen, override=None, override_is_seeded=True, request=None)


async def words(model: RoutedModel) -> str:
    request = ModelRequest(model.route.model, [{"role": "user", "content": "hello"}])
    return "".join([event.text async for event in model.client.stream(request) if isinstance(event, TextDelta)])


async def test_the_saved_connection_is_used_with_its_key_until_it_is_forgotten(
    page: ModelGateway, servers: tuple[ModelServer, ModelServer]
) -> None:
    router, _ = servers
    router.key = "key-of-a-person-1234"

    saved = await routed(page, choice("auto", router.url, "key-of-a-person-1234"))
    after = await routed(page, choice("auto"))

    assert (saved.route.model, await words(saved)) == ("big-model", "hello")
    assert after.route.model == "small-model"
    saved.release()
    after.release()


async def test_a_run_keeps_its_server_while_another_is_saved_and_then_it_is_closed(
    page: ModelGateway, servers: tuple[ModelServer, ModelServer]
) -> None:
    router, other = servers
    running = await routed(page, choice("router", router.url))

    later = await routed(page, choice("router", other.url))
    said = await words(running)
    upstream = running.client.upstream()
    running.release()
    await asyncio.gather(*page.endpoints._closing)

    assert (said, later.route.model) == ("hello", "small-model")
    assert upstream.closed
    assert not later.client.upstream().closed
    later.release()


async def test_a_key_that_cannot_be_read_stops_the_run_with_a_sentence_and_is_never_left_out(
    servers: tuple[ModelServer, ModelServer],
) -> None:
    router, _ = servers
    gateway = ModelGateway(ModelSettings(), LocalModelSettings(), Keyring(bytes(32)))

    with pytest.raises(ModelConfigurationError, match="POPAGENT_SECRET_KEY is not the key"):
        await routed(gateway, choice("auto", router.url, "key-of-a-person-1234"))

    assert list(router.log) == []
    await gateway.close()


async def test_the_state_says_which_model_answers_or_why_none_does(
    page: ModelGateway, servers: tuple[ModelServer, ModelServer]
) -> None:
    router, embedded = servers
    nothing = ModelGateway(ModelSettings(), LocalModelSettings(), KEYRING)
    missing = choice("auto", router.url)
    missing = replace(missing, runtime=missing.runtime.model_copy(update={"default_model": "gone"}))

    well = await page.state(choice("auto", router.url))
    absent = await page.state(missing)
    none = await nothing.state(choice("auto"))
    only = await nothing.state(choice("local"))
    embedded.models = ModelList(status=503)
    loading = await page.state(choice("auto"))
    await nothing.close()

    assert (well.source, well.model, well.trouble) == ("page", "big-model", "")
    assert "does not offer the chosen model “gone”" in absent.trouble
    assert (none.source, none.trouble) == ("none", NOT_CONNECTED)
    assert "modelSource allows “local” alone" in only.trouble
    assert (loading.source, loading.trouble) == ("embedded", LOADING)


async def test_a_list_that_is_just_asked_for_again_is_no_trouble_of_a_slow_server(
    page: ModelGateway, servers: tuple[ModelServer, ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    router, _ = servers
    connected = choice("auto", router.url)
    await page.state(connected)
    router.models = ModelList(ids=("big-model",), delay_s=30)
    monkeypatch.setattr(catalogue, "FRESH_S", 0.0)

    slow = await page.state(connected, wait_s=0.05)

    assert (slow.model, slow.trouble) == ("big-model", "")


async def test_a_server_that_is_gone_is_trouble_though_its_list_is_remembered(
    page: ModelGateway, servers: tuple[ModelServer, ModelServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    router, _ = servers
    connected = choice("auto", router.url)
    await page.state(connected)
    router.models = ModelList(status=503)
    monkeypatch.setattr(catalogue, "FRESH_S", 0.0)

    gone = await page.state(connected)

    assert (await page.view(connected)).models == ["big-model"]
    assert (gone.model, "failed (status 503)" in gone.trouble) == ("big-model", True)
