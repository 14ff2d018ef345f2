"""One real suite for every test of this folder that asks for it; a test that breaks it for good makes its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.hook_door import HookDoor
from tests.suite import Suite
from tests.talk import Talk


@pytest.fixture(scope="session")
def running_hook_door() -> Iterator[HookDoor]:
    """The server of this test process that hooks of the shared suite may be posted to."""
    with HookDoor() as door:
        yield door


@pytest.fixture(scope="session")
def running_suite(tmp_path_factory: pytest.TempPathFactory, running_hook_door: HookDoor) -> Iterator[Suite]:
    """The suite of this test process, started when first asked for."""
    env = {"POPAGENT_HOOK_ORIGINS": running_hook_door.origin}
    with Suite(tmp_path_factory.mktemp("suite"), env=env) as suite:
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
