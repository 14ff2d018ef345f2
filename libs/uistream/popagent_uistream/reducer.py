"""Chunks to the UIMessage that the official client makes of them.

While something is open the message says so, and can therefore be stored, sent and taken up again: an open text part
keeps its `id` beside `state: "streaming"` and the open step carries `open: true`. Both are unknown to the official
schema, which drops them, and vanish when the part or the step is closed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from popagent_uistream.chunks import UNSET, Chunk, Json
from popagent_uistream.partial_json import parse_partial
from popagent_uistream.state import INTERRUPTED, StreamState

Message: TypeAlias = dict[str, Any]
Part: TypeAlias = dict[str, Any]

_SKIPPED_KEYS: Final = frozenset({"__proto__", "constructor", "prototype"})
_TOOL_VALUES: Final = ("input", "output", "errorText", "rawInput", "preliminary")


class OrphanChunkError(ValueError):
    """The chunk speaks of a part that was never opened; the official client fails here too."""


@dataclass(slots=True)
class _Growing:
    """A part under way; fragments are joined when the message is read, since a join for each is quadratic."""

    part: Part
    fragments: list[str] = field(default_factory=list)

    def take(self) -> str:
        text = "".join(self.fragments)
        self.fragments.clear()
        return text


class MessageReducer:
    """Grows one assistant message; `message` takes up a stored one where it stopped.

    A transient data part enters the message only when its type is in `store_transient`; objects of such a part are
    deltas, which are merged with what was told before.
    """

    def __init__(self, message: Message | None = None, *, store_transient: Collection[str] = ()) -> None:
        self.finish_reason: str | None = None
        self.store_transient = frozenset(store_transient)
        self._message: Message = (
            {"id": "", "role": "assistant", "parts": []} if message is None else copy.deepcopy(message)
        )
        self._parts: list[Part] = self._message["parts"]
        self._growing: dict[tuple[str, str], _Growing] = {}
        self._step_from = 0  # index of the current step's first part
        for index, part in enumerate(self._parts):
            self._take_up(index, part)

    @property
    def message(self) -> Message:
        """The message so far: live, so dump or copy it before the next chunk."""
        for (kind, _), growing in self._growing.items():
            self._flush(kind, growing)
        return self._message

    def apply(self, chunk: Chunk) -> None:
        """Grow the message by one chunk; an end chunk closes nothing by itself.

        Raises:
            OrphanChunkError: The part of this delta, end or result is not known.
        """
        rule = _RULES.get(chunk["type"])
        if rule is not None:
            rule(self, chunk)
        elif chunk["type"].startswith("data-"):
            self._data(chunk)

    def apply_all(self, chunks: list[Chunk]) -> Message:
        """Apply each chunk and return the live message."""
        for chunk in chunks:
            self.apply(chunk)
        return self.message

    def _take_up(self, index: int, part: Part) -> None:
        kind = part["type"]
        if kind == "step-start":
            self._step_from = index + 1
        elif kind in {"text", "reasoning"} and part.get("state") == "streaming" and "id" in part:
            self._growing[kind, part["id"]] = _Growing(part)
        elif part.get("state") == "input-streaming":
            self._growing["tool", part["toolCallId"]] = _Growing(part)

    def _flush(self, kind: str, growing: _Growing) -> None:
        if not growing.fragments:
            return
        if kind != "tool":
            growing.part["text"] += growing.take()
            return
        growing.part["rawInput"] = growing.part.get("rawInput", "") + growing.take()
        _put(growing.part, "input", parse_partial(growing.part["rawInput"]))

    # -- message, steps, things that stand alone ------------------------------------------------------------------

    def _start(self, chunk: Chunk) -> None:
        if "messageId" in chunk:
            self._message["id"] = chunk["messageId"]
        self._metadata(chunk)

    def _finish(self, chunk: Chunk) -> None:
        self.finish_reason = chunk.get("finishReason", self.finish_reason)
        self._metadata(chunk)

    def _metadata(self, chunk: Chunk) -> None:
        metadata = chunk.get("messageMetadata")
        if metadata is not None:
            base = self._message.get("metadata")
            self._message["metadata"] = metadata if base is None else merge(base, metadata)

    def _start_step(self, _: Chunk) -> None:
        self._parts.append({"type": "step-start", "open": True})
        self._step_from = len(self._parts)

    def _finish_step(self, _: Chunk) -> None:
        if self._step_from:
            self._parts[self._step_from - 1].pop("open", None)
        for kind, part_id in [key for key in self._growing if key[0] != "tool"]:
            growing = self._growing.pop((kind, part_id))
            self._flush(kind, growing)
            if kind == "text":
                growing.part.pop("id", None)

    def _stand_alone(self, chunk: Chunk) -> None:
        self._parts.append(dict(chunk))

    def _data(self, chunk: Chunk) -> None:
        part = dict(chunk)
        if part.get("transient"):
            if part["type"] not in self.store_transient:
                return
            del part["transient"]
        if "id" in part:
            for known in self._parts:
                if known["type"] == part["type"] and known.get("id") == part["id"]:
                    known["data"] = self._told(known["data"], part)
                    return
        self._parts.append(part)

    def _told(self, before: Json, part: Part) -> Json:
        now = part["data"]
        deltas = part["type"] in self.store_transient and isinstance(before, dict) and isinstance(now, dict)
        return merge(before, now) if deltas else now

    # -- text and reasoning ---------------------------------------------------------------------------------------

    def _part_start(self, chunk: Chunk) -> None:
        kind = _kind(chunk)
        part = {"type": kind, "id": chunk["id"], "text": "", "state": "streaming"}
        _copy(chunk, part, "providerMetadata")
        self._parts.append(part)
        self._growing[kind, chunk["id"]] = _Growing(part)

    def _part_delta(self, chunk: Chunk) -> None:
        growing = self._known(_kind(chunk), chunk["id"], chunk)
        growing.fragments.append(chunk["delta"])
        _copy(chunk, growing.part, "providerMetadata")

    def _part_end(self, chunk: Chunk) -> None:
        kind = _kind(chunk)
        growing = self._known(kind, chunk["id"], chunk)
        self._flush(kind, growing)
        del self._growing[kind, chunk["id"]]
        growing.part["state"] = "done"
        _copy(chunk, growing.part, "providerMetadata")
        if kind == "text":
            del growing.part["id"]

    def _known(self, kind: str, part_id: str, chunk: Chunk) -> _Growing:
        growing = self._growing.get((kind, part_id))
        if growing is None:
            raise OrphanChunkError(f"{chunk['type']}: {part_id} was never opened")
        return growing

    # -- tool calls -----------------------------------------------------------------------------------------------

    def _tool_start(self, chunk: Chunk) -> None:
        part = self._tool_part(chunk)
        self._growing["tool", chunk["toolCallId"]] = _Growing(part)
        _change(part, chunk, "input-streaming")

    def _tool_delta(self, chunk: Chunk) -> None:
        self._known("tool", chunk["toolCallId"], chunk).fragments.append(chunk["inputTextDelta"])

    def _tool_input(self, chunk: Chunk) -> None:
        self._growing.pop(("tool", chunk["toolCallId"]), None)
        _change(self._tool_part(chunk), chunk, "input-available", input=chunk["input"])

    def _tool_input_error(self, chunk: Chunk) -> None:
        self._growing.pop(("tool", chunk["toolCallId"]), None)
        known = self._in_step(chunk["toolCallId"])
        part = known or self._tool_part(chunk)
        # The client keeps what it was given as `input` for a dynamic tool and as `rawInput` for our own.
        place = "input" if part["type"] == "dynamic-tool" else "rawInput"
        untitled = {key: value for key, value in chunk.items() if key != "title"}
        values = {place: chunk["input"], "errorText": chunk["errorText"]}
        _change(part, untitled, "output-error", **values)

    def _tool_output(self, chunk: Chunk) -> None:
        part = self._invocation(chunk)
        values = {"output": chunk["output"]} | ({"preliminary": True} if chunk.get("preliminary") else {})
        _change(part, chunk, "output-available", input=part.get("input", UNSET), **values)

    def _tool_error(self, chunk: Chunk) -> None:
        part = self._invocation(chunk)
        raw = UNSET if part["type"] == "dynamic-tool" else part.get("rawInput", UNSET)
        values = {"rawInput": raw, "errorText": chunk["errorText"]}
        _change(part, chunk, "output-error", input=part.get("input", UNSET), **values)

    def _tool_denied(self, chunk: Chunk) -> None:
        self._invocation(chunk)["state"] = "output-denied"

    def _tool_approval(self, chunk: Chunk) -> None:
        self._invocation(chunk).update(state="approval-requested", approval={"id": chunk["approvalId"]})

    def _tool_part(self, chunk: Chunk) -> Part:
        """Return the call's part in the current step, a new one when there is none of its kind."""
        kind = "dynamic-tool" if chunk.get("dynamic") else f"tool-{chunk['toolName']}"
        part = self._in_step(chunk["toolCallId"])
        if part is None or (part["type"] == "dynamic-tool") is not (kind == "dynamic-tool"):
            part = {"toolCallId": chunk["toolCallId"]}
            self._parts.append(part)
        part["type"] = kind
        if kind == "dynamic-tool":
            part["toolName"] = chunk["toolName"]
        return part

    def _in_step(self, call_id: str) -> Part | None:
        return next((part for part in self._parts[self._step_from :] if part.get("toolCallId") == call_id), None)

    def _invocation(self, chunk: Chunk) -> Part:
        call_id = chunk["toolCallId"]
        growing = self._growing.pop(("tool", call_id), None)
        if growing is not None:
            self._flush("tool", growing)
        part = self._in_step(call_id) or next(
            (part for part in reversed(self._parts) if part.get("toolCallId") == call_id), None
        )
        if part is None:
            raise OrphanChunkError(f"{chunk['type']}: call {call_id} was never opened")
        return part


def merge(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `overrides` over it: objects merge, everything else (lists too) is replaced."""
    merged = dict(base)
    for key, value in overrides.items():
        if key in _SKIPPED_KEYS:
            continue
        known = merged.get(key)
        merged[key] = merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def client_view(message: Message) -> Message:
    """Return the message without the marks of what is open: what the official client has."""
    parts = []
    for part in message["parts"]:
        dropped = {"step-start": "open", "text": "id"}.get(part["type"])
        parts.append({name: value for name, value in part.items() if name != dropped})
    return message | {"parts": parts}


def interrupted(message: Message, error_text: str = INTERRUPTED) -> Message:
    """Return a stored partial message closed: no part streams, unfinished calls failed with `error_text`."""
    return MessageReducer(message).apply_all(StreamState.of(message).close_open(error_text))


def _change(part: Part, chunk: Chunk, state: str, **values: Json) -> None:
    part["state"] = state
    for name in _TOOL_VALUES:
        _put(part, name, values.get(name, UNSET))
    for name in ("title", "toolMetadata", "providerExecuted"):
        _copy(chunk, part, name)
    if "providerMetadata" in chunk:
        place = "resultProviderMetadata" if state.startswith("output-") else "callProviderMetadata"
        part[place] = chunk["providerMetadata"]


def _put(part: Part, name: str, value: Json) -> None:
    if value is UNSET:
        part.pop(name, None)
    else:
        part[name] = value


def _copy(chunk: Chunk, part: Part, name: str) -> None:
    if name in chunk:
        part[name] = chunk[name]


def _kind(chunk: Chunk) -> str:
    return str(chunk["type"]).partition("-")[0]


_RULES: Final[dict[str, Callable[[MessageReducer, Chunk], None]]] = {
    "start": MessageReducer._start,
    "finish": MessageReducer._finish,
    "message-metadata": MessageReducer._metadata,
    "start-step": MessageReducer._start_step,
    "finish-step": MessageReducer._finish_step,
    "file": MessageReducer._stand_alone,
    "source-url": MessageReducer._stand_alone,
    "source-document": MessageReducer._stand_alone,
    "text-start": MessageReducer._part_start,
    "text-delta": MessageReducer._part_delta,
    "text-end": MessageReducer._part_end,
    "reasoning-start": MessageReducer._part_start,
    "reasoning-delta": MessageReducer._part_delta,
    "reasoning-end": MessageReducer._part_end,
    "tool-input-start": MessageReducer._tool_start,
    "tool-input-delta": MessageReducer._tool_delta,
    "tool-input-available": MessageReducer._tool_input,
    "tool-input-error": MessageReducer._tool_input_error,
    "tool-output-available": MessageReducer._tool_output,
    "tool-output-error": MessageReducer._tool_error,
    "tool-output-denied": MessageReducer._tool_denied,
    "tool-approval-request": MessageReducer._tool_approval,
}
