"""What is asked of the model for a chat request, and how its answer is turned back. Pure: no network, no clock."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from popagent_kit.errors import AppError
from popagent_local.model_server import prompt
from popagent_local.model_server.schema import NO_TOOL, decision_schema, name_for_no_tool, narrow, spaced

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})
TOOL_NAME: Final = re.compile(r"\A[A-Za-z0-9_.-]{1,128}\Z")
MOST_TOOLS: Final = 128
# Passed on as they are. Whatever else clients send (user, store, metadata, reasoning effort) means nothing here.
SAMPLING: Final = ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")
PLAIN_ONLY: Final = ("stop", "logprobs", "top_logprobs", "logit_bias", "response_format")
DEFAULT_MAX_TOKENS: Final = 600
# A small model that decides must not gamble.
DECISION_TEMPERATURE: Final = 0.0
PLAIN_TEMPERATURE: Final = 0.2
# Small models fall into saying the same sentence for ever. Copying this many tokens in a row, from the text or from
# oneself, is taken for a quotation; beyond, each further one becomes less likely.
NO_LOOPS: Final = {"dry_multiplier": 0.8, "dry_base": 1.5, "dry_allowed_length": 20, "dry_penalty_last_n": 1_024}


class BadRequestError(AppError):
    """The request is not one that this server can carry out."""

    code = "invalid_request_error"
    http_status = 400


@dataclass(frozen=True)
class Plan:
    """What goes to the model. First the decision, if there is one to make; then the answer, if no tool was chosen.

    `answer_schema` is the form that an answer beside tools must have, None for text.
    """

    stream: bool
    include_usage: bool
    decision: dict[str, Any] | None = None
    decision_schema: dict[str, Any] | None = None
    answer: dict[str, Any] | None = None
    answer_schema: dict[str, Any] | None = None
    is_plain: bool = False
    no_tool: str = NO_TOOL


@dataclass(frozen=True)
class ToolUse:
    """Which tools are offered, which may be called, and whether the model may answer instead."""

    offered: list[dict[str, Any]] = field(default_factory=list)
    callable: list[dict[str, Any]] = field(default_factory=list)
    may_answer: bool = True


def plan(request: Any) -> Plan:
    """Return the plan for a chat completion request.

    Raises:
        BadRequestError: The request is malformed, or asks for something that is not offered; `field` names it.
    """
    if not isinstance(request, dict):
        raise BadRequestError("The body must be a JSON object.")
    messages = _messages(request.get("messages"))
    if request.get("n") not in (None, 1):
        raise BadRequestError("Only one choice a request is offered.", field="n")
    answer_format = _response_format(request.get("response_format"))
    tools = _tool_use(request)
    options = request.get("stream_options")
    include_usage = isinstance(options, dict) and options.get("include_usage") is True
    about = Plan(stream=request.get("stream") is True, include_usage=include_usage)
    body = _body(request)
    told_calls = any(m["role"] == "tool" or m.get("tool_calls") for m in messages)
    if not tools.offered and not told_calls:
        return replace(about, answer=_plain(body, messages, request), is_plain=True)
    no_tool = name_for_no_tool(tools.offered)
    told = prompt.decision_messages(messages, tools.offered, no_tool)
    planned = replace(about, no_tool=no_tool)
    if tools.callable:
        asked = prompt.deciding_messages(told, messages, no_tool)
        decision = {"temperature": DECISION_TEMPERATURE, **body, "messages": asked}
        schema = decision_schema(tools.callable, may_answer=tools.may_answer, no_tool=no_tool)
        planned = replace(planned, decision=decision, decision_schema=schema)
    if tools.may_answer:
        asked = prompt.answer_messages(told, messages, as_json=answer_format is not None)
        answer = {"temperature": PLAIN_TEMPERATURE, **NO_LOOPS, **body, "messages": asked}
        if answer_format is None:
            answer["stop"] = prompt.echoes(messages)
        form = spaced(narrow(answer_format)) if answer_format is not None else None
        planned = replace(planned, answer=answer, answer_schema=form)
    return planned


def _plain(body: dict[str, Any], messages: list[dict[str, Any]], request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request that has nothing to do with tools: the model's own server understands it."""
    passed = {key: request[key] for key in PLAIN_ONLY if request.get(key) is not None}
    return {"temperature": PLAIN_TEMPERATURE, **NO_LOOPS, **body, **passed, "messages": prompt.plain_messages(messages)}


def _body(request: Mapping[str, Any]) -> dict[str, Any]:
    body = {key: request[key] for key in SAMPLING if request.get(key) is not None}
    limit = request.get("max_completion_tokens") or request.get("max_tokens") or DEFAULT_MAX_TOKENS
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise BadRequestError("max_tokens must be a positive number.", field="max_tokens")
    return body | {"max_tokens": limit}


def _messages(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        raise BadRequestError("messages must be a list with at least one message.", field="messages")
    for number, message in enumerate(value):
        where = f"messages[{number}]"
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise BadRequestError(f"{where}.role must be one of {', '.join(sorted(ROLES))}.", field=f"{where}.role")
        _check_content(message.get("content"), where)
        for call in message.get("tool_calls") or []:
            function = call.get("function") if isinstance(call, dict) else None
            if not isinstance(function, dict) or not isinstance(function.get("name"), str):
                raise BadRequestError(f"{where}.tool_calls holds no function call.", field=f"{where}.tool_calls")
            if not isinstance(function.get("arguments", ""), str):
                raise BadRequestError(f"{where}.tool_calls: arguments is a JSON text.", field=f"{where}.tool_calls")
    return value


def _check_content(content: Any, where: str) -> None:
    if content is None or isinstance(content, str):
        return
    parts = content if isinstance(content, list) else [None]
    for part in parts:
        is_text = isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
        if not is_text:
            raise BadRequestError(f"{where}.content: this model reads text alone.", field=f"{where}.content")


def _tool_use(request: Mapping[str, Any]) -> ToolUse:
    tools = request.get("tools") or []
    if not isinstance(tools, list) or len(tools) > MOST_TOOLS:
        raise BadRequestError(f"tools must be a list of at most {MOST_TOOLS}.", field="tools")
    functions = [_function(tool, number) for number, tool in enumerate(tools)]
    names = [function["name"] for function in functions]
    if len(set(names)) < len(names):
        raise BadRequestError("Two tools have the same name.", field="tools")
    choice = request.get("tool_choice")
    if choice in (None, "auto"):
        return ToolUse(functions, functions)
    if choice == "none":
        # Still explained, so that the prompt begins as in the steps before and is found in the cache.
        return ToolUse(functions, [])
    if choice == "required":
        if not functions:
            raise BadRequestError("tool_choice is required, but there are no tools.", field="tool_choice")
        return ToolUse(functions, functions, may_answer=False)
    named = choice.get("function") if isinstance(choice, dict) and choice.get("type") == "function" else None
    wanted = named.get("name") if isinstance(named, dict) else None
    chosen = [function for function in functions if function["name"] == wanted]
    if not chosen:
        raise BadRequestError("tool_choice is auto, none, required, or names one of the tools.", field="tool_choice")
    return ToolUse(functions, chosen, may_answer=False)


def _function(tool: Any, number: int) -> dict[str, Any]:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    if not isinstance(function, dict) or not TOOL_NAME.match(str(function.get("name") or "")):
        raise BadRequestError(f"tools[{number}] is no function with a name.", field=f"tools[{number}]")
    if not isinstance(function.get("parameters") or {}, dict):
        raise BadRequestError(f"tools[{number}]: parameters must be a JSON schema.", field=f"tools[{number}]")
    return function


def _response_format(value: Any) -> dict[str, Any] | None:
    """Return the schema that an answer must have, or None for text."""
    if value is None:
        return None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    inner = value.get("json_schema") if kind == "json_schema" else None
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        raise BadRequestError(
            "response_format is text, json_object, or json_schema with a schema.", field="response_format"
        )
    return schema
