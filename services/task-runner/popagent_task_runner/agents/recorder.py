"""Makes a transcript of what the loop sends to a watcher: steps, words and calls, of specialists too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from popagent_agent.messages import call_result, is_tool_part, steps_of, tool_name, visible_text
from popagent_agent.ports import DelegateThread
from popagent_proto.task_runner.activity import CallStatus
from popagent_task_runner.tasks.executor import Call, Note, TaskRun
from popagent_uistream.chunks import Chunk

ACTIVITY: Final = "data-agentActivity"
ENDS: Final[dict[str, CallStatus]] = {
    "tool-output-available": "completed",
    "tool-output-error": "failed",
    "tool-output-denied": "denied",
    "tool-input-error": "failed",
}
OF_PARTS: Final[dict[str, CallStatus]] = {"output-available": "completed", "output-denied": "denied"}
STATES: Final[dict[str, CallStatus]] = {"running": "running", "done": "completed", "failed": "failed"}


@dataclass
class _Specialist:
    agent_id: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    steps: dict[str, int] = field(default_factory=dict)


class Recorder:
    """Hears every chunk of one run; `agent_id` is who carries it out."""

    def __init__(self, run: TaskRun, agent_id: str) -> None:
        self._run = run
        self._agent_id = agent_id
        self._step = 0
        self._text: list[str] = []
        self._calls: dict[str, Call] = {}
        self._specialists: dict[str, _Specialist] = {}

    async def emit(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        kind = chunk["type"]
        if kind == "start-step":
            self._step += 1
            self._run.note(self._note("step-start"))
        elif kind == "text-delta":
            self._text.append(chunk["delta"])
            self._run.said(self._note("text", text=chunk["delta"]))
        elif kind == "tool-input-available":
            self._called(Call(chunk["toolCallId"], chunk["toolName"], chunk["input"]))
        elif kind in ENDS:
            self._returned(chunk, ENDS[kind])
        elif kind == "finish-step":
            self._run.note(self._note("step", text="".join(self._text), calls=tuple(self._calls.values())))
            self._text.clear()
            self._calls.clear()
        elif kind == ACTIVITY:
            self._heard(str(chunk.get("id", "")), chunk["data"])

    def _called(self, call: Call) -> None:
        self._calls[call.call_id] = call
        self._run.note(self._note("tool-call", calls=(call,)))

    def _returned(self, chunk: Chunk, status: CallStatus) -> None:
        call_id = chunk["toolCallId"]
        known = self._calls.get(call_id)
        tool = known.tool if known is not None else str(chunk.get("toolName", ""))
        arguments = known.arguments if known is not None else chunk.get("input")
        output, error = chunk.get("output"), chunk.get("errorText")
        result = output if output is None or isinstance(output, str) else str(output)
        call = Call(call_id, tool, arguments, result=result, error=error, status=status)
        self._calls[call_id] = call
        self._run.note(self._note("tool-call", calls=(call,)))

    def _heard(self, activity_id: str, told: dict[str, Any]) -> None:
        """Take what was told of a specialist: deltas by number, of which a call comes twice."""
        specialist = self._specialists.setdefault(activity_id, _Specialist())
        if "agentId" in told:
            specialist.agent_id = told["agentId"]
            begins = f"Asked by {told['askedBy']}" if "askedBy" in told else "Works on"
            note = Note("status", f"{begins}: {told.get('task', '')}", activity_id, specialist.agent_id)
            self._run.note(note)
        for number, entry in (told.get("entries") or {}).items():
            step = specialist.steps.setdefault(number, int(entry.get("step", 0)))
            if entry.get("kind") == "text":
                self._run.said(Note("text", entry["text"], activity_id, specialist.agent_id, step))
                continue
            known = specialist.calls.get(number)
            tool = known.tool if known is not None else str(entry.get("tool", ""))
            arguments = known.arguments if known is not None else entry.get("input")
            status = STATES.get(entry.get("state", ""), "running")
            call = Call(f"{activity_id}-{number}", tool, arguments, status=status)
            specialist.calls[number] = call
            self._run.note(Note("tool-call", "", activity_id, specialist.agent_id, step, calls=(call,)))

    def heard_out(self, thread: DelegateThread) -> None:
        """Take all that a specialist said and did, step by step, with what its calls gave."""
        told = iter(self._specialists.get(thread.call_id, _Specialist()).calls.values())
        for message in thread.messages:
            if message["role"] != "assistant":
                continue
            for number, parts in enumerate(steps_of(message["parts"])):
                if not parts:
                    continue  # what stands before the first mark of a step
                calls = tuple(_ended(part, next(told, None)) for part in parts if is_tool_part(part))
                text = visible_text(parts)
                self._run.note(Note("step", text, thread.call_id, thread.agent_id, number, calls=calls))

    def _note(self, kind: Any, *, text: str = "", calls: tuple[Call, ...] = ()) -> Note:
        return Note(kind, text, self._run.turn_id, self._agent_id, self._step, calls=calls)


def _ended(part: Mapping[str, Any], told: Call | None) -> Call:
    """Return a call with its end; its id is the one under which it was told of."""
    tool = tool_name(part)
    call_id = told.call_id if told is not None and told.tool == tool else part["toolCallId"]
    status = OF_PARTS.get(part["state"], "failed")
    result = call_result(part)
    if status == "completed":
        return Call(call_id, tool, part.get("input"), result=result, status=status)
    return Call(call_id, tool, part.get("input"), error=result, status=status)
