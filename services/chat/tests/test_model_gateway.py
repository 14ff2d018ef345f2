"""The model source chooses the endpoint of later runs; a run that has begun keeps its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from popagent_chat.models.gateway import ModelGateway
from popagent_chat.models.settings import LocalModelSettings
from popagent_models.errors import ModelConfigurationError, UnknownModelError
from popagent_models.settings import ModelSettings
from popagent_proto.chat.settings import AgentRuntimeView, ModelSource
from popagent_testing.model_server import ModelList, ModelServer
from popagent_testing.runtime_settings import agent_runtime


def runtime(source: ModelSource) -> AgentRuntimeView:
    return agent_runtime(model_source=source)


@pytest.fixture
def servers() -> Iterator[tuple[ModelServer, ModelServer]]:
    with ModelServer() as router, ModelServer() as embedded:
        router.models = ModelList(ids=("big-model",))
        embedded.models = ModelList(ids=("small-model",))
        yield router, embedded


@pytest.fixture
async def gateway(servers: tuple[ModelServer, ModelServer]) -> AsyncIterator[ModelGateway]:
    router, embedded = servers
    made = ModelGateway(ModelSettings(model_url=router.url), LocalModelSettings(url=embedded.url))
    yield made
    await made.close()


async def chosen(gateway: ModelGateway, source: ModelSource) -> tuple[str, str]:
    routed = await gateway.route(runtime(source), override=None, override_is_seeded=True, request=None)
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
    before = await gateway.route(runtime("router"), override=None, override_is_seeded=True, request=None)
    endpoint = before.client.endpoint

    await gateway.route(runtime("local"), override=None, override_is_seeded=True, request=None)

    assert before.client.endpoint == endpoint


async def test_a_model_is_checked_against_the_source_it_will_be_used_with(gateway: ModelGateway) -> None:
    await gateway.require_known("small-model", runtime("local"), field="defaultModel")

    with pytest.raises(UnknownModelError):
        await gateway.require_known("small-model", runtime("router"), field="defaultModel")


async def test_a_source_without_an_address_says_what_to_set() -> None:
    gateway = ModelGateway(ModelSettings(), LocalModelSettings())

    with pytest.raises(ModelConfigurationError, match="POPAGENT_MODEL_URL"):
        await gateway.route(runtime("auto"), override=None, override_is_seeded=True, request="any-model")
    await gateway.close()
