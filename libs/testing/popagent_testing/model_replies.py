"""What the scripted model server can answer: a `Reply` is plain data, so that it can also be sent over HTTP."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final, Literal

import orjson

Fault = Literal[
    "stall",  # silence after `after` deltas, until the client leaves
    "cut",  # connection dropped between two events
    "cut-line",  # connection dropped in the middle of a data line
    "cut-json",  # the body ends properly, in the middle of a data line
    "no-finish",  # the body ends properly, without finish_reason and [DONE]
    "malformed",  # one data line that is not JSON, then the rest
    "all-malformed",  # every data line is broken
    "json",  # one JSON body where a stream was asked
    "json-glued-done",  # the same, typed as a stream and with `data: [DONE]` glued on
    "sse",  # a stream where JSON was asked
    "error-event",  # an error object inside the stream
    "plain-lines",  # plain-text data lines, and [DONE] twice
    "empty",  # 200, a stream without any event
    "lying-length",  # content-length promises more than is sent
    "open-end",  # everything up to the finish reason, then silence
    "long-line",  # 8 MiB without a line end
]
ToolStyle = Literal["fragments", "whole", "no-index", "no-id", "id-repeated", "object-arguments", "legacy"]

CREATED: Final = 1_700_000_000
LONG_LINE_BYTES: Final = 8 * 1024 * 1024


@dataclasses.dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call of the scripted model; `arguments` is JSON text."""

    name: str
    arguments: str = "{}"
    call_id: str = ""


def call(name: str, /, **arguments: Any) -> ScriptedCall:
    """Return a call of the tool with these arguments."""
    return ScriptedCall(name, orjson.dumps(arguments).decode())


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer. `when` limits it to requests whose last message contains that text.

    Args:
        chunks: Number of text deltas; None means one a word.
        token_delay_s: Pause before every delta.
        after: Number of deltas sent before `fault`, `hold` or `heartbeats` takes effect.
        hold: Wait after `after` deltas until `release` is called.
        heartbeats: Number of SSE comments sent `heartbeat_s` apart after `after` deltas.
        dribble_bytes: Write the body in pieces of this size, so that lines and characters are split.
        raw: The whole body as text; replaces everything else but status, headers and delays.
    """

    text: str = ""
    chunks: int | None = None
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    tool_calls: tuple[ScriptedCall, ...] = ()
    tool_style: ToolStyle = "fragments"
    finish: str | None = None
    usage: bool = True
    cached_tokens: int = 0
    status: int = 200
    error: str = ""
    retry_after: str | None = None
    header_delay_s: float = 0.0
    token_delay_s: float = 0.0
    fault: Fault | None = None
    after: int = 0
    hold: bool = False
    heartbeats: int = 0
    heartbeat_s: float = 0.05
    newline: str = "\n"
    dribble_bytes: int = 0
    raw: str | None = None
    content_type: str = "text/event-stream"
    when: str | None = None
    times: int = 1

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Reply:
        """Return the reply that `to_json` described; unknown keys raise TypeError."""
        calls = tuple(ScriptedCall(**call) for call in value.get("tool_calls", ()))
        return cls(**{**value, "tool_calls": calls})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return dataclasses.asdict(self)

    @property
    def immediate(self) -> bool:
        """Whether the whole answer can be written at once."""
        waits = self.header_delay_s or self.token_delay_s or self.hold or self.heartbeats or self.dribble_bytes
        return not waits and self.fault is None

    @property
    def finish_reason(self) -> str:
        """The finish reason on the wire."""
        return self.finish or ("tool_calls" if self.tool_calls else "stop")


def text_pieces(reply: Reply) -> list[str]:
    """Return the text of each delta; joined they are the reply's text."""
    if not reply.text:
        return []
    if reply.chunks is None:
        return re.findall(r"\s*\S+\s*\Z|\s*\S+|\s+", reply.text)
    size = max(1, -(-len(reply.text) // reply.chunks))
    return [reply.text[at : at + size] for at in range(0, len(reply.text), size)]


def tool_deltas(reply: Reply) -> list[dict[str, Any]]:
    """Return the deltas that carry the reply's tool calls, in the quirk that `tool_style` names."""
    deltas: list[dict[str, Any]] = []
    for index, call in enumerate(reply.tool_calls):
        call_id = call.call_id or f"call_{index}_{call.name}"
        if reply.tool_style == "legacy":
            deltas.append({"function_call": {"name": call.name, "arguments": call.arguments}})
            continue
        head: dict[str, Any] = {"index": index, "id": call_id, "type": "function"}
        if reply.tool_style == "no-id":
            del head["id"]
        if reply.tool_style == "no-index":
            del head["index"]
        if reply.tool_style in {"whole", "object-arguments", "no-index"}:
            whole = orjson.loads(call.arguments) if reply.tool_style == "object-arguments" else call.arguments
            deltas.append({"tool_calls": [{**head, "function": {"name": call.name, "arguments": whole}}]})
            continue
        deltas.append({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        follow = head if reply.tool_style == "id-repeated" else {"index": index}
        deltas.extend(
            {"tool_calls": [{**follow, "function": {"arguments": call.arguments[at : at + 7]}}]}
            for at in range(0, len(call.arguments), 7)
        )
    return deltas


def usage_of(reply: Reply, request: dict[str, Any]) -> dict[str, Any]:
    """Return made-up but stable token counts: a word is a token."""
    prompt = sum(len(str(message.get("content") or "").split()) for message in request.get("messages", []))
    answer = len(text_pieces(reply)) + sum(len(call.arguments) // 4 + 1 for call in reply.tool_calls)
    thought = len(reply.reasoning.split())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": answer + thought,
        "total_tokens": prompt + answer + thought,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def envelope(model: str, choices: list[dict[str, Any]], kind: str = "chat.completion.chunk") -> dict[str, Any]:
    """Return an OpenAI response object around `choices`."""
    return {"id": "chatcmpl-scripted", "object": kind, "created": CREATED, "model": model, "choices": choices}


def events(reply: Reply, request: dict[str, Any]) -> tuple[list[bytes], list[bytes]]:
    """Return the ready SSE events: the deltas, and what closes the answer (finish, usage, [DONE])."""
    model = str(request.get("model", ""))
    line_end = reply.newline.encode()

    def event(value: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps(value) + line_end + line_end

    def delta(value: dict[str, Any], finish: str | None = None) -> bytes:
        return event(envelope(model, [{"index": 0, "delta": value, "finish_reason": finish}]))

    deltas = [delta({reply.reasoning_field: word}) for word in re.findall(r"\s*\S+", reply.reasoning)]
    deltas += [delta({"content": piece}) for piece in text_pieces(reply)]
    deltas += [delta(value) for value in tool_deltas(reply)]
    deltas[:0] = [delta({"role": "assistant", "content": ""})] if reply.fault != "empty" else []
    closing = [delta({}, reply.finish_reason)]
    if reply.usage and (request.get("stream_options") or {}).get("include_usage"):
        closing.append(event({**envelope(model, []), "usage": usage_of(reply, request)}))
    closing.append(b"data: [DONE]" + line_end + line_end)
    return deltas, closing


def completion(reply: Reply, request: dict[str, Any]) -> bytes:
    """Return the same answer as one JSON body."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message[reply.reasoning_field] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.call_id or f"call_{index}_{call.name}", "type": "function"}
            | {"function": {"name": call.name, "arguments": call.arguments}}
            for index, call in enumerate(reply.tool_calls)
        ]
    choices = [{"index": 0, "message": message, "finish_reason": reply.finish_reason}]
    body = envelope(str(request.get("model", "")), choices, "chat.completion")
    if reply.usage:
        body["usage"] = usage_of(reply, request)
    return orjson.dumps(body)


def error_body(reply: Reply) -> bytes:
    """Return an OpenAI error object; the text is the provider's own and must never reach a person."""
    message = reply.error or f"scripted failure {reply.status}"
    return orjson.dumps({"error": {"message": message, "type": "scripted_error", "code": None}})
