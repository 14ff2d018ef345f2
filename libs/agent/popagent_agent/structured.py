"""Structured output: a schema goes in, a checked value comes out, however much the model talks around it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from popagent_agent.answer import BROKEN_OFF, ENDLESS, LONGEST_ANSWER, events_of
from popagent_agent.argument_repair import parsed_at, repaired, without_trailing_commas
from popagent_agent.messages import ChatMessage, reminder
from popagent_agent.ports import ModelPort
from popagent_agent.stopping import StopSignal
from popagent_agent.tokens import added
from popagent_kit import json
from popagent_kit.text import excerpt, one_line
from popagent_models.errors import ContextOverflowError, ModelProviderError, ModelRequestError
from popagent_models.events import Finished, TextDelta, Usage
from popagent_models.request import ModelRequest

log = logging.getLogger(__name__)

T = TypeVar("T", bound=BaseModel)

MOST_RETRIES: Final = 2
# A text may begin with many braces that begin nothing.
MOST_BEGINNINGS: Final = 50
MOST_FORGIVEN: Final = 3
SHOWN_CHARACTERS: Final = 4_000
DEMAND: Final = """\
Answer with one JSON object and nothing else. It must fit this JSON schema:
{schema}"""
NOTHING: Final = "There was no whole JSON object in your answer."
AGAIN: Final = "{problem}\nAnswer again with one JSON object that fits the schema, and nothing else."


class StructureError(ModelProviderError):
    """The model did not give an answer of the asked form, also when it was told what was wrong."""

    code = "model_structure"


@dataclass(frozen=True, slots=True)
class Structured(Generic[T]):
    """`usage` is that of all attempts."""

    value: T
    usage: Usage
    attempts: int


async def structured(
    model: ModelPort, request: ModelRequest, shape: type[T], *, stop: StopSignal, retries: int = MOST_RETRIES
) -> Structured[T]:
    """Ask `request` for an object of `shape`; its messages say what is wanted, the schema is added here.

    An answer that does not fit is sent back with the reason, at most `retries` times and never more than twice.

    Raises:
        StructureError: No answer fitted.
        ModelError: The model failed.
        StoppedError: The run was stopped.
    """
    asked = _demanding(request, shape)
    usage = Usage(0, 0)
    problem = NOTHING
    attempts = 1 + max(0, min(retries, MOST_RETRIES))
    for attempt in range(1, attempts + 1):
        asked, text, used = await _answered(model, asked, stop)
        usage = added(usage, used)
        value, problem = fitting(text, shape)
        if value is not None:
            return Structured(value, usage, attempt)
        log.info("an answer has not the asked form", extra={"shape": shape.__name__, "attempt": attempt})
        asked = replace(asked, messages=[*asked.messages, *_sent_back(text, problem)])
    raise StructureError(f"The model did not answer in the asked form. {one_line(problem, 300)}")


def fitting(text: str, shape: type[T]) -> tuple[T | None, str]:
    """Return the first whole JSON object in `text` that fits, else None and what is wrong with the first one."""
    problem = ""
    for found in objects_in(text):
        try:
            return shape.model_validate(repaired(shape, found)), ""
        except ValidationError as error:
            problem = problem or _explained(error)
    return None, problem or NOTHING


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield the outermost whole JSON objects of a text, in order; a comma too many is forgiven."""
    at = text.find("{")
    for number in range(MOST_BEGINNINGS):
        if at < 0:
            return
        found = parsed_at(text, at)
        if found is None and number < MOST_FORGIVEN:
            lenient = without_trailing_commas(text[at:])
            found = parsed_at(lenient, 0)
            text, at = (text, at) if found is None else (lenient, 0)
        if found is not None and isinstance(found[0], dict):
            yield found[0]
        at = text.find("{", at + 1 if found is None else found[1])


def _demanding(request: ModelRequest, shape: type[BaseModel]) -> ModelRequest:
    schema = shape.model_json_schema()
    demand = DEMAND.format(schema=json.dumps(schema).decode())
    *before, last = request.messages
    told: list[ChatMessage] = [*before, last, reminder(demand)]
    if last["role"] == "user":
        told = [*before, {**last, "content": f"{last['content']}\n\n{demand}"}]
    form = {"type": "json_schema", "json_schema": {"name": shape.__name__, "schema": schema}}
    return replace(request, messages=told, response_format=form)


async def _answered(model: ModelPort, request: ModelRequest, stop: StopSignal) -> tuple[ModelRequest, str, Usage]:
    """Return the answer, and the request in the form that this server takes."""
    try:
        return request, *await _text(model, request, stop)
    except ModelRequestError as error:
        if error.started or request.response_format is None or isinstance(error, ContextOverflowError):
            raise
        # Not every server knows response formats; the schema stands in the message as well.
        log.info("asked without a response format", extra={"code": error.code})
        request = replace(request, response_format=None)
        return request, *await _text(model, request, stop)


async def _text(model: ModelPort, request: ModelRequest, stop: StopSignal) -> tuple[str, Usage]:
    texts: list[str] = []
    size = 0
    usage = Usage(0, 0)
    finished = False
    async with aclosing(events_of(model, request, stop)) as events:
        async for event in events:
            match event:
                case TextDelta(text):
                    texts.append(text)
                    size += len(text)
                case Usage():
                    usage = event
                case Finished():
                    finished = True
            if size > LONGEST_ANSWER:
                raise ModelProviderError(ENDLESS, started=True)
    if not finished:
        raise ModelProviderError(BROKEN_OFF, started=True)
    return "".join(texts), usage


def _sent_back(text: str, problem: str) -> list[ChatMessage]:
    said = excerpt(text.strip(), SHOWN_CHARACTERS) or "(nothing)"
    return [{"role": "assistant", "content": said}, reminder(AGAIN.format(problem=problem))]


def _explained(error: ValidationError) -> str:
    problems = (f"{'.'.join(map(str, item['loc'])) or 'the object'}: {item['msg']}" for item in error.errors()[:8])
    return f"Your answer does not fit. {one_line('; '.join(problems), 1_200)}."
