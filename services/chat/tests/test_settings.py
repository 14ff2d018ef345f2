"""The agent runtime settings: read, patched field by field, never half."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.models import ListModels
from popagent_proto.chat.settings import AgentRuntimePatch, AgentRuntimeView, GetAgentRuntime, PatchAgentRuntime
from popagent_testing.model_server import ModelList, ModelServer
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Door, refusal

pytestmark = pytest.mark.usefixtures("chat")


async def patch(door: Door, **fields: Any) -> AgentRuntimeView:
    body = AgentRuntimePatch.model_validate(fields)
    view: AgentRuntimeView = await door.ask(PatchAgentRuntime(command_id=new_id(), body=body))
    return view


async def test_a_patch_changes_what_it_names_and_tells_of_it(door: Door, pool: Pool) -> None:
    before = await door.ask(GetAgentRuntime())

    after = await patch(door, supervisorMaxSteps=64, delegationFailureText="Try again.")

    assert (after.supervisor_max_steps, after.delegation_failure_text) == (64, "Try again.")
    assert after.revision == before.revision + 1
    unchanged = {"supervisor_max_steps", "delegation_failure_text", "revision", "updated_at"}
    assert after.model_dump(exclude=unchanged) == before.model_dump(exclude=unchanged)
    assert await door.ask(GetAgentRuntime()) == after
    told = await pool.fetchval(
        "select payload::jsonb->'settings'->>'supervisorMaxSteps' from outbox where aggregate_id = 'agent-runtime' "
        "order by position desc limit 1"
    )
    assert told == "64"


async def test_a_stale_revision_is_answered_with_the_stored_settings(door: Door) -> None:
    stored = await patch(door, concurrentToolCalls=3)

    error = await refusal(patch(door, concurrentToolCalls=5, revision=stored.revision - 1))
    current = await patch(door, concurrentToolCalls=5, revision=stored.revision)

    assert (error.http_status, error.code) == (409, "revision_conflict")
    assert error.extra["settings"]["concurrentToolCalls"] == 3
    assert current.concurrent_tool_calls == 5


async def test_null_is_refused_where_only_a_value_fits_and_clears_the_default_model(
    door: Door, model: ModelServer
) -> None:
    error = await refusal(patch(door, supervisorMaxSteps=None))
    chosen = await patch(door, defaultModel="scripted-model")
    cleared = await patch(door, defaultModel=None)

    assert (error.http_status, error.field) == (422, "supervisorMaxSteps")
    assert (chosen.default_model, cleared.default_model) == ("scripted-model", None)


@pytest.mark.parametrize("model_id", ["", " ", "unknown-model", "a b", "x" * 200])
async def test_a_default_model_that_is_not_offered_is_refused(model_id: str, door: Door) -> None:
    error = await refusal(patch(door, defaultModel=model_id))

    assert (error.http_status, error.field) == (422, "defaultModel")


async def test_patches_at_the_same_moment_all_count(door: Door) -> None:
    before = await door.ask(GetAgentRuntime())

    await asyncio.gather(
        patch(door, backgroundConcurrency=7), patch(door, processorRetries=5), patch(door, backgroundPollMs=500)
    )

    after = await door.ask(GetAgentRuntime())
    assert (after.background_concurrency, after.processor_retries, after.background_poll_ms) == (7, 5, 500)
    assert after.revision == before.revision + 3


async def test_the_catalogue_is_shown_with_its_windows_and_the_default(
    door: Door, model: ModelServer, monkeypatch: pytest.MonkeyPatch, start: StartChat
) -> None:
    model.models = ModelList(ids=("one", "two"), fields={"context_length": 5_000})

    view = await door.ask(ListModels())

    assert (view.models, view.known) == (["one", "two"], True)
    assert view.context_windows == {"one": 5_000, "two": 5_000}
    assert view.default_model == "scripted-model"


async def test_a_silent_catalogue_says_why_nothing_is_known(door: Door, model: ModelServer) -> None:
    model.models = ModelList(status=500)

    view = await door.ask(ListModels(), timeout_s=10)

    assert (view.models, view.known) == ([], False)
    assert "500" in view.note


async def test_a_catalogue_that_never_answers_is_told_in_time(door: Door, model: ModelServer) -> None:
    model.models = ModelList(delay_s=60)

    view = await door.bus.ask(ListModels())

    assert (view.models, view.known) == ([], False)
