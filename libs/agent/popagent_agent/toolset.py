"""Tools: a typed function becomes a JSON schema, checked arguments and a bounded outcome that speaks to the model."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from popagent_agent.argument_repair import lenient_object, repaired
from popagent_agent.normalise import normalised
from popagent_agent.ports import LeaseLostError
from popagent_agent.run_context import Access, RunContext
from popagent_kit import json
from popagent_kit.errors import AppError, MalformedJsonError
from popagent_kit.text import excerpt, one_line
from popagent_telemetry import redact
from popagent_uistream.chunks import ChunkError, json_value

log = logging.getLogger(__name__)

LARGEST_ARGUMENTS_BYTES: Final = 1_000_000
LONGEST_OUTPUT: Final = 64_000
DEFAULT_TIMEOUT_S: Final = 60.0


class ToolArgumentsError(ValueError):
    """The arguments cannot be used; the text says to the model what would be."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What the model is told; `error` marks a failure, which never ends the turn. `took_s` is set when it ran.

    `refused`: a hook kept the call from being made, and the text is its reason.
    """

    text: str
    error: bool = False
    took_s: float | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call. `may_suspend` marks calls that can wait for somebody.

    `takes_call_id`: it is given the id of the call besides. `changes`: after it others may give other results, whatever
    its `access` is. `longest_output` counts characters.
    """

    name: str
    description: str
    access: Access
    may_suspend: bool
    timeout_s: float
    function: Callable[..., Awaitable[Any]]
    arguments: type[BaseModel]
    takes_call_id: bool = False
    changes: bool = False
    longest_output: int = LONGEST_OUTPUT

    def schema(self) -> dict[str, Any]:
        """Return the tool as the model's wire format has it; its parameters are shared, and nobody may change them."""
        function = {"name": self.name, "description": self.description, "parameters": _parameters(self.arguments)}
        return {"type": "function", "function": function}

    def checked(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them; null for an argument with a default means the default.

        Raises:
            ToolArgumentsError: One is missing, unknown or of the wrong type.
        """
        try:
            model = self.arguments.model_validate(self._present(given))
        except ValidationError as error:
            raise ToolArgumentsError(self._explained(error)) from error
        return {name: getattr(model, name) for name in self.arguments.model_fields}

    def repaired(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as they must be meant, when they are wrong in a way that leaves no doubt."""
        present = self._present(given)
        better = repaired(self.arguments, present)
        return given if better is present else better

    def _present(self, given: dict[str, Any]) -> dict[str, Any]:
        fields = self.arguments.model_fields
        return {
            name: value
            for name, value in given.items()
            if value is not None or name not in fields or fields[name].is_required()
        }

    def _explained(self, error: ValidationError) -> str:
        problems = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()[:5]
        )
        takes = ", ".join(
            f"{name} (required)" if field.is_required() else name for name, field in self.arguments.model_fields.items()
        )
        return f"The arguments of {self.name} do not fit. {one_line(problems, 600)}. It takes: {takes or 'nothing'}."


def tool(
    name: str, *, access: Access, may_suspend: bool = False, timeout_s: float = DEFAULT_TIMEOUT_S
) -> Callable[[Callable[..., Awaitable[Any]]], Tool]:
    """Make a tool of an async function whose first parameter is the RunContext; its docstring is what models read."""

    def made(function: Callable[..., Awaitable[Any]]) -> Tool:
        hints = get_type_hints(function, include_extras=True)
        parameters = list(inspect.signature(function).parameters.values())[1:]
        fields: dict[str, Any] = {
            parameter.name: (
                hints[parameter.name],
                ... if parameter.default is inspect.Parameter.empty else parameter.default,
            )
            for parameter in parameters
        }
        arguments = create_model(f"{name}-arguments", __config__=ConfigDict(extra="forbid"), **fields)
        description = inspect.cleandoc(function.__doc__ or "")
        return Tool(name, description, access, may_suspend, timeout_s, function, arguments)

    return made


def parse_arguments(text: str) -> dict[str, Any]:
    """Return the JSON object that a model wrote as arguments; nothing at all counts as no arguments.

    What is not quite JSON is taken as what it must mean, see `lenient_object`.

    Raises:
        ToolArgumentsError: Too large, not JSON, not an object, or with values that cannot be passed on.
    """
    if len(text.encode("utf-8", "replace")) > LARGEST_ARGUMENTS_BYTES:
        raise ToolArgumentsError(f"The arguments are larger than {LARGEST_ARGUMENTS_BYTES} bytes. Send less at once.")
    if not text.strip():
        return {}
    try:
        value = _loaded(text)
        if isinstance(value, dict):
            value = json_value(value)
    except (MalformedJsonError, ChunkError, UnicodeEncodeError) as error:
        raise ToolArgumentsError(
            f"The arguments are not valid JSON ({one_line(str(error), 160)}). Send one JSON object."
        ) from error
    if not isinstance(value, dict):
        raise ToolArgumentsError("The arguments must be one JSON object with the argument names as keys.")
    return value


def _loaded(text: str) -> Any:
    try:
        value = json.loads(text)
    except MalformedJsonError:
        if (meant := lenient_object(text)) is None:
            raise
        return meant
    return (lenient_object(text) or value) if isinstance(value, str) else value


class Toolset:
    """The tools of one run, in order; every failure of a call is an outcome, so that the turn goes on.

    `always` are offered besides, whatever the model can bear.
    """

    def __init__(self, tools: Iterable[Tool], always: Sequence[Tool] = ()) -> None:
        self._narrowable = list({tool.name: tool for tool in tools}.values())
        self._always = always
        self._tools = {tool.name: tool for tool in [*self._narrowable, *always]}

    def narrowed(self, most: int, delegates: Sequence[Tool] = ()) -> Toolset:
        """Return the first ones of these tools and of `delegates`, `most` in all: a small model gets lost among many.

        Where not all fit, delegates get half of the places, and whatever these tools leave free.
        """
        for_delegates = min(len(delegates), max(most // 2, most - len(self._narrowable)))
        own = self._narrowable[: most - for_delegates]
        return Toolset([*own, *delegates[:for_delegates]], self._always)

    def with_also(self, tool: Tool) -> Toolset:
        """Return these tools and one more, whatever the model can bear."""
        return Toolset(self._narrowable, [*self._always, tool])

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, None when there is none."""
        return self._tools.get(name)

    def schemas(self) -> list[dict[str, Any]]:
        """Return the tools as the model's wire format has them."""
        return [tool.schema() for tool in self._tools.values()]

    async def call(self, name: str, arguments_json: str, run: RunContext) -> ToolOutcome:
        """Check and carry out a call.

        Raises:
            LeaseLostError: The run is not ours any more.
        """
        try:
            arguments = self.arguments_of(name, arguments_json)
        except ToolArgumentsError as error:
            return ToolOutcome(str(error), error=True)
        return await self.call_parsed(name, arguments, run)

    def arguments_of(self, name: str, arguments_json: str) -> dict[str, Any]:
        """Return the arguments of a call, parsed and, where they leave no doubt, put right.

        Raises:
            ToolArgumentsError: See `parse_arguments`.
        """
        arguments = parse_arguments(arguments_json)
        tool = self._tools.get(name)
        return arguments if tool is None else tool.repaired(arguments)

    async def call_parsed(
        self, name: str, arguments: dict[str, Any], run: RunContext, call_id: str = ""
    ) -> ToolOutcome:
        """Carry out a call whose arguments are parsed; as `call` otherwise."""
        tool = self._tools.get(name)
        if tool is None:
            known = ", ".join(self._tools) or "none"
            return ToolOutcome(f"There is no tool named {excerpt(name, 80)}. The tools are: {known}.", error=True)
        refusal = run.policy.refusal(tool.name, tool.access)
        if refusal is not None:
            return ToolOutcome(refusal, error=True)
        try:
            checked = tool.checked(arguments)
        except ToolArgumentsError as error:
            return ToolOutcome(str(error), error=True)
        if tool.takes_call_id:
            checked["call_id"] = call_id
        return await _carried_out(tool, checked, run)


async def _carried_out(tool: Tool, arguments: dict[str, Any], run: RunContext) -> ToolOutcome:
    try:
        async with asyncio.timeout(tool.timeout_s):
            result = await tool.function(run, **arguments)
        return ToolOutcome(_bounded(_as_text(result), tool.longest_output))
    except LeaseLostError:
        raise
    except TimeoutError:
        log.warning("tool timed out", extra={"tool": tool.name, "timeout_s": tool.timeout_s})
        return ToolOutcome(f"{tool.name} did not finish within {tool.timeout_s:g} s.", error=True)
    except AppError as error:
        return ToolOutcome(_bounded(error.message, LONGEST_OUTPUT), error=True)
    except Exception:
        log.exception("tool failed", extra={"tool": tool.name})
        return ToolOutcome(f"{tool.name} failed on our side; the same call will fail again.", error=True)


def _as_text(result: Any) -> str:
    if isinstance(result, str):
        return result
    if isinstance(result, BaseModel):
        return result.model_dump_json(by_alias=True)
    if isinstance(result, list | tuple):
        result = [_as_json(item) for item in result]
    return json.dumps(result).decode()


def _as_json(item: Any) -> Any:
    return item.model_dump(mode="json", by_alias=True) if isinstance(item, BaseModel) else item


def _bounded(text: str, most: int) -> str:
    """An outcome is stored, published and shown to a model: no credential, no more than `most` characters."""
    text = redact(normalised(text))
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[cut: {len(text) - most} more characters]"


@functools.cache
def _parameters(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema, made once: every run asks for every tool, and pydantic takes long over one."""
    parameters = _plain(arguments.model_json_schema())
    parameters.setdefault("properties", {})
    return parameters


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what only costs tokens: titles, and the null branch of arguments that may simply be left out."""
    plain = {name: value for name, value in schema.items() if name not in {"title", "additionalProperties"}}
    properties = plain.get("properties")
    if isinstance(properties, dict):
        plain["properties"] = {name: _plain(value) for name, value in properties.items()}
    branches = [branch for branch in plain.get("anyOf", ()) if branch.get("type") != "null"]
    if len(branches) == 1:
        del plain["anyOf"]
        plain = {**branches[0], **plain}
    if plain.get("default", ...) is None:
        del plain["default"]
    return plain
