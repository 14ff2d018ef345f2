"""The official AI SDK client talks to the real suite: schema, reducer and chat state machine."""

from __future__ import annotations

import asyncio

import pytest

from popagent_testing.model_replies import Reply
from tests.conformance.official_client import run_live
from tests.suite import Suite

pytestmark = [pytest.mark.node, pytest.mark.timeout(180)]


@pytest.mark.parametrize("version", [6, pytest.param(7, marks=pytest.mark.full)])
async def test_the_official_client_sends_stops_resumes_and_regenerates(suite: Suite, version: int) -> None:
    slow = " ".join(f"w{number}" for number in range(60))
    suite.model.script(
        Reply(text=slow, token_delay_s=0.05, when="slow", times=0),
        Reply(status=500, error="broken", when="failing", times=0),
    )

    report = await asyncio.to_thread(
        run_live,
        suite.base_url,
        suite.key,
        prompts={"normal": "a normal question", "slow": "a slow question", "failing": "a failing question"},
        timeout_s=120,
        version=version,
    )

    assert report["leftOut"] == []
    assert len(report["checks"]) == 8
