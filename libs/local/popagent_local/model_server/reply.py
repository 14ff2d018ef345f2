"""The model's decision as standard chat completion chunks, or put together as one completion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from popagent_kit.ids import new_id
from popagent_local.model_server.shim import Plan
from popagent_local.model_server.stream import ArgumentsGrew, DecisionReader, ToolNamed

Chunk = dict[str, Any]


class DecisionReply:
    """Turns the upstream chunks of one decision into the chunks that the client gets."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.reader = DecisionReader(plan.no_tool, raw_answer=plan.raw_answer)
        self.call_id = f"call_{new_id().replace('-', '')}"
        self.begun = False

    def feed(self, upstream: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks that an upstream chunk leads to: none, one or several."""
        base = {key: upstream[key] for key in ("id", "created", "model", "system_fingerprint") if key in upstream}
        base["object"] = "chat.completion.chunk"
        out: list[Chunk] = []
        if not self.begun:
            self.begun = True
            out.append(_chunk(base, {"role": "assistant", "content": None}))
        for choice in upstream.get("choices") or []:
            text = (choice.get("delta") or {}).get("content")
            out += [_chunk(base, delta) for delta in self._deltas(text or "")]
            if choice.get("finish_reason"):
                out.append(_chunk(base, {}, self._finish_reason(choice["finish_reason"])))
        if upstream.get("usage") and self.plan.include_usage:
            out.append({**base, "choices": [], "usage": upstream["usage"]})
        return out

    def _deltas(self, text: str) -> Iterable[dict[str, Any]]:
        for event in self.reader.feed(text):
            if isinstance(event, ToolNamed):
                function = {"name": event.name, "arguments": ""}
                yield {"tool_calls": [{"index": 0, "id": self.call_id, "type": "function", "function": function}]}
            elif isinstance(event, ArgumentsGrew):
                yield {"tool_calls": [{"index": 0, "function": {"arguments": event.text}}]}
            else:
                yield {"content": event.text}

    def _finish_reason(self, reason: str) -> str:
        if reason == "stop" and not self.reader.complete:
            # The model ended in the middle of its object: what is there is a beginning, and must not pass for a whole.
            return "length"
        return "tool_calls" if reason == "stop" and self.reader.tool is not None else reason


def completion(chunks: Iterable[Chunk]) -> dict[str, Any]:
    """Return the chunks of one reply as a single completion.

    Raises:
        ValueError: They end without a finish reason.
    """
    base: dict[str, Any] = {}
    content: list[str] = []
    call: dict[str, Any] | None = None
    arguments: list[str] = []
    finish_reason = None
    for chunk in chunks:
        base |= {key: value for key, value in chunk.items() if key != "choices"}
        for choice in chunk["choices"]:
            delta = choice["delta"]
            content.append(delta.get("content") or "")
            for piece in delta.get("tool_calls", ()):
                call = call or {key: value for key, value in piece.items() if key != "index"}
                arguments.append(piece["function"]["arguments"])
            finish_reason = choice["finish_reason"] or finish_reason
    if finish_reason is None:
        raise ValueError("the model's reply ended without a finish reason")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(content) or None}
    if call is not None:
        message["tool_calls"] = [{**call, "function": {**call["function"], "arguments": "".join(arguments)}}]
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    return {**base, "object": "chat.completion", "choices": [choice]}


def _chunk(base: Mapping[str, Any], delta: dict[str, Any], finish_reason: str | None = None) -> Chunk:
    return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}
