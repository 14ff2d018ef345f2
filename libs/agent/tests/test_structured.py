"""Answers of a given form: recovered from what surrounds them, asked again with the reason, bounded."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from pydantic import BaseModel, Field

from popagent_agent.stopping import StoppedError, StopSignal
from popagent_agent.structured import StructureError, fitting, objects_in, structured
from popagent_models.errors import ContextOverflowError, ModelProviderError, ModelRequestError, ModelTimeoutError
from popagent_models.events import TextDelta, Usage
from popagent_models.request import ModelRequest


class Plan(BaseModel):
    """A plan."""

    title: str
    steps: list[str] = Field(min_length=1)
    hours: int = 1


GOOD = '{"title": "Fix it", "steps": ["look", "change"]}'
REQUEST = ModelRequest("scripted", [{"role": "system", "content": "Plan."}, {"role": "user", "content": "Fix it?"}])


async def ask(model: Any, **options: Any) -> Any:
    return await structured(model, REQUEST, Plan, stop=StopSignal(), **options)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Here is the plan:\n```json\n{GOOD}\n```\nDone. {{}}",
        f'<think>{{"title": 5, "steps": []}} or {{"a": {{</think>{GOOD}',
        '{"title": "Fix it", "steps": ["look", "change",], "hours": "1",}',
        f'{{"plan": {GOOD}}}',
    ],
)
async def test_the_first_whole_object_that_fits_is_the_answer(kit: Any, text: str) -> None:
    model = kit.model([kit.says(text)])

    made = await ask(model)

    assert made.value == Plan(title="Fix it", steps=["look", "change"])
    assert (made.attempts, made.usage) == (1, Usage(10, 5))


async def test_the_schema_is_told_in_words_and_as_a_format(kit: Any) -> None:
    model = kit.model([kit.says(GOOD)])

    await ask(model)

    [request] = model.requests
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.messages[1]["content"].startswith("Fix it?\n\n")
    assert '"steps"' in request.messages[1]["content"]
    assert request.response_format["json_schema"]["schema"]["required"] == ["title", "steps"]


async def test_an_answer_that_does_not_fit_is_sent_back_with_the_reason(kit: Any) -> None:
    model = kit.model([kit.says("No."), kit.says('{"title": "Fix it", "steps": []}'), kit.says(GOOD)])

    made = await ask(model)

    assert (made.attempts, made.usage) == (3, Usage(30, 15))
    second, third = model.requests[1].messages, model.requests[2].messages
    assert second[-2] == {"role": "assistant", "content": "No."}
    assert "no whole JSON object" in second[-1]["content"]
    assert "steps: List should have at least 1 item" in third[-1]["content"]


@pytest.mark.parametrize(("retries", "asked"), [(0, 1), (1, 2), (2, 3), (10, 3)])
async def test_it_is_asked_again_twice_at_most(kit: Any, retries: int, asked: int) -> None:
    model = kit.model([kit.says("No.")])

    with pytest.raises(StructureError, match="asked form"):
        await ask(model, retries=retries)

    assert len(model.requests) == asked


async def test_a_server_without_response_formats_is_asked_without(kit: Any) -> None:
    model = kit.model([[ModelRequestError()], kit.says("No."), kit.says(GOOD)])

    made = await ask(model)

    assert made.attempts == 2
    assert [request.response_format is None for request in model.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("reply", "raised"),
    [
        ([ModelTimeoutError()], ModelTimeoutError),
        ([ContextOverflowError()], ContextOverflowError),
        ([TextDelta("{")], ModelProviderError),
        ([TextDelta("x" * 500_000)] * 5, ModelProviderError),
        ([ZeroDivisionError("inner detail")], ModelProviderError),
    ],
)
async def test_a_model_that_fails_is_not_asked_again(kit: Any, reply: Any, raised: type[Exception]) -> None:
    model = kit.model([reply])

    with pytest.raises(raised):
        await ask(model)

    assert (len(model.requests), model.closed) == (1, 1)


@pytest.mark.timeout(5)
async def test_a_stop_ends_it_at_once(kit: Any) -> None:
    model = kit.model([[asyncio.Event()]])
    stop = StopSignal()
    running = asyncio.create_task(structured(model, REQUEST, Plan, stop=stop))
    await model.waiting.wait()

    stop.stop()

    with pytest.raises(StoppedError):
        await running
    assert model.closed == 1


def test_objects_are_found_in_order_and_not_inside_of_each_other() -> None:
    assert list(objects_in('a {"x": {"y": 1}} b {c} {"z": "}{"} [{"w": 2}]')) == [
        {"x": {"y": 1}},
        {"z": "}{"},
        {"w": 2},
    ]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["{", '{"a":', '{"a":{', "{}", '"', "{,", '{"'])
def test_hostile_texts_cost_little(piece: str) -> None:
    began_at = time.process_time()

    assert fitting(piece * (500_000 // len(piece)), Plan)[0] is None
    assert time.process_time() - began_at < 5
