"""One real suite for every test of this folder that asks for it; a test that breaks it for good makes its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.suite import Suite
from tests.talk import Talk


@pytest.fixture(scope="session")
def running_suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    """The suite of this test process, started when first asked for."""
    with Suite(tmp_path_factory.mktemp("suite")) as suite:
        yield suite


@pytest.fixture
def suite(running_suite: Suite) -> Suite:
    """The shared suite with a model that has forgotten what earlier tests told it."""
    running_suite.model.reset()
    return running_suite


@pytest.fixture
async def talk(suite: Suite) -> AsyncIterator[Talk]:
    """A client of the shared suite."""
    async with suite.talk() as client:
        yield client
