from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from popagent_models.client import ModelClient, Timeouts
from popagent_models.endpoint import endpoint
from popagent_models.usage import UsageRecord
from popagent_testing.model_server import ModelServer


class KeptRecords:
    """A usage sink that remembers."""

    def __init__(self) -> None:
        self.records: list[UsageRecord] = []

    async def record(self, record: UsageRecord) -> None:
        self.records.append(record)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture
def usage() -> KeptRecords:
    return KeptRecords()


@pytest.fixture
async def client(server: ModelServer, usage: KeptRecords) -> AsyncIterator[ModelClient]:
    made = ModelClient(endpoint(server.url), timeouts=Timeouts(header_s=5, idle_s=5), usage=usage)
    yield made
    await made.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("popagent_models.client.FIRST_PAUSE_S", 0.01)
