"""A message as the fewest chunks that rebuild it; what is open stays open, so that the live chunks go on from there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk
from popagent_uistream.state import StreamState

_CALL_FIELDS: Final = ("title", "toolMetadata", "providerExecuted")
_STAND_ALONE: Final = frozenset({"file", "source-url", "source-document"})


def snapshot_chunks(
    message: dict[str, Any], *, ending: Chunk | None = None, transient: Collection[str] = ()
) -> list[Chunk]:
    """Return chunks from `start` that rebuild `message`, as MessageReducer keeps it; none before its own start.

    Args:
        message: A partial or a whole message.
        ending: finish, abort or error; whatever is open is closed before it.
        transient: Data types that were sent as transient and are sent so again.

    The answer to an approval cannot travel: the client that gave it has it.
    """
    if not (message["id"] or message["parts"] or ending):
        return []  # its start is still to come, and would be a second one
    result = [{"type": "start", "messageId": message["id"]}]
    if message.get("metadata") is not None:
        result[0]["messageMetadata"] = message["metadata"]
    step_open = False
    closed_at_end = not StreamState.of(message).step_open
    used = {part["id"] for part in message["parts"] if part.get("state") == "streaming" and "id" in part}
    for index, part in enumerate(message["parts"]):
        kind = part["type"]
        if kind == "step-start":
            if step_open:
                result.append(chunks.finish_step())
            step_open = True
            result.append(chunks.start_step())
            continue
        if step_open and closed_at_end and part.get("state") in {"streaming", "input-streaming"}:
            # What still grows was opened after its step, whose end would make the client forget it.
            step_open = False
            result.append(chunks.finish_step())
        if kind in {"text", "reasoning"}:
            result += _growing(part, part.get("id") or _free_id(index, used))
        elif "toolCallId" in part:
            result += _call(part)
        elif kind.startswith("data-"):
            result.append(part | {"transient": True} if kind in transient else dict(part))
        elif kind in _STAND_ALONE:
            result.append(dict(part))
    if step_open and closed_at_end:
        result.append(chunks.finish_step())
    return result if ending is None else result + StreamState.of(message).end(ending)


def _free_id(index: int, used: set[str]) -> str:
    part_id = f"part-{index}"
    while part_id in used:
        part_id += "-"
    return part_id


def _growing(part: dict[str, Any], part_id: str) -> list[Chunk]:
    kind = part["type"]
    metadata = {"providerMetadata": part["providerMetadata"]} if "providerMetadata" in part else {}
    result = [{"type": f"{kind}-start", "id": part_id, **metadata}]
    if part["text"]:
        result.append({"type": f"{kind}-delta", "id": part_id, "delta": part["text"]})
    if part.get("state") != "streaming":
        result.append({"type": f"{kind}-end", "id": part_id})
    return result


def _call(part: dict[str, Any]) -> list[Chunk]:
    call_id, state = part["toolCallId"], part["state"]
    dynamic = part["type"] == "dynamic-tool"
    call: Chunk = {
        "toolCallId": call_id,
        "toolName": part["toolName"] if dynamic else part["type"].removeprefix("tool-"),
        **({"dynamic": True} if dynamic else {}),
    }
    head = call | {name: part[name] for name in _CALL_FIELDS if name in part}
    if "callProviderMetadata" in part:
        head["providerMetadata"] = part["callProviderMetadata"]
    raw = part.get("rawInput")
    if state == "input-streaming" or (state == "output-error" and ("input" not in part or "rawInput" in part)):
        result = [{"type": "tool-input-start", **head}]
        if isinstance(raw, str) and (state == "input-streaming" or "input" in part):
            result.append({"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": raw})
    else:
        result = [{"type": "tool-input-available", **head, "input": part.get("input")}]
    if "approval" in part:
        approval_id = part["approval"]["id"]
        result.append({"type": "tool-approval-request", "approvalId": approval_id, "toolCallId": call_id})
    outcome = _outcome(part, call)
    return result if outcome is None else [*result, outcome]


def _outcome(part: dict[str, Any], call: Chunk) -> Chunk | None:
    state, call_id = part["state"], part["toolCallId"]
    metadata = {"providerMetadata": part["resultProviderMetadata"]} if "resultProviderMetadata" in part else {}
    if state == "output-available":
        preliminary = {"preliminary": True} if part.get("preliminary") else {}
        return {
            "type": "tool-output-available",
            "toolCallId": call_id,
            "output": part["output"],
            **preliminary,
            **metadata,
        }
    if state == "output-error" and "rawInput" in part and "input" not in part:
        return {
            "type": "tool-input-error",
            **call,
            "input": part["rawInput"],
            "errorText": part["errorText"],
            **metadata,
        }
    if state == "output-error":
        return {"type": "tool-output-error", "toolCallId": call_id, "errorText": part["errorText"], **metadata}
    if state == "output-denied":
        return {"type": "tool-output-denied", "toolCallId": call_id}
    return None
