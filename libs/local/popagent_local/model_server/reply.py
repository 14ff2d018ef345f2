"""Standard chat completion chunks out of what the model wrote, and one completion out of chunks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from popagent_kit.ids import new_id
from popagent_local.model_server.stream import DecisionReader, ToolNamed

Chunk = dict[str, Any]

# What stays the same in every chunk of a reply.
COMMON: Final = ("id", "created", "model", "system_fingerprint")


class Reply:
    """Builds the chunks of one reply, which may be put together from two answers of the model."""

    def __init__(self, no_tool: str) -> None:
        self.reader = DecisionReader(no_tool)
        self.finished = False
        self._call_id = f"call_{new_id().replace('-', '')}"
        self._common: dict[str, Any] = {}
        self._usages: list[Mapping[str, Any]] = []

    @property
    def chose_to_answer(self) -> bool:
        """Tell whether the decision is complete, and is for no tool."""
        return self.reader.complete and self.reader.tool is None

    def decision(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks for an event of the decision; the end is told only when it is the end of the reply."""
        out = self._begin(event)
        for choice in event.get("choices") or []:
            for part in self.reader.feed((choice.get("delta") or {}).get("content") or ""):
                if isinstance(part, ToolNamed):
                    call = {"id": self._call_id, "type": "function", "function": {"name": part.name, "arguments": ""}}
                else:
                    call = {"function": {"arguments": part.text}}
                out.append(self._chunk({"tool_calls": [{"index": 0, **call}]}))
            reason = choice.get("finish_reason")
            if reason and not self.chose_to_answer:
                # One that stopped amid its object is a beginning, and must not pass for a whole.
                out.append(self._end("tool_calls" if reason == "stop" and self.reader.complete else "length"))
        return out

    def answer(self, event: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks for an event of the answer, which needs no translation."""
        out = self._begin(event)
        for choice in event.get("choices") or []:
            delta = {key: value for key, value in choice.get("delta", {}).items() if key != "role" and value}
            if delta:
                more = {"logprobs": choice["logprobs"]} if choice.get("logprobs") else {}
                out.append(self._chunk(delta, **more))
            if choice.get("finish_reason"):
                out.append(self._end(choice["finish_reason"]))
        return out

    def usage(self) -> Chunk:
        """Return the chunk that tells the tokens: the longest prompt once, and all that was written."""
        if not self._usages:
            return {**self._common, "choices": [], "usage": None}
        written = sum(usage["completion_tokens"] for usage in self._usages)
        prompt = self._usages[-1]["prompt_tokens"]
        details = self._usages[0].get("prompt_tokens_details")
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        more = {"prompt_tokens_details": details} if details else {}
        return {**self._common, "choices": [], "usage": usage | more}

    def _begin(self, event: Mapping[str, Any]) -> list[Chunk]:
        if event.get("usage"):
            self._usages.append(event["usage"])
        if self._common:
            return []
        self._common = {key: event[key] for key in COMMON if key in event} | {"object": "chat.completion.chunk"}
        return [self._chunk({"role": "assistant", "content": None})]

    def _end(self, reason: str) -> Chunk:
        self.finished = True
        return self._chunk({}, finish_reason=reason)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> Chunk:
        return {**self._common, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, **more}]}


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
