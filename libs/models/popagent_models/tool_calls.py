"""Putting streamed tool calls together, although servers disagree on how a fragment names its call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from popagent_kit.ids import new_id
from popagent_models.errors import ModelProviderError
from popagent_models.events import ToolCallDelta, ToolCallStart
from popagent_models.text_cleaning import clean

MOST_CALLS: Final = 128
LONGEST_ID: Final = 512
UNNAMED: Final = "unnamed"


@dataclass(slots=True)
class Slot:
    """One tool call while it grows: by fragments of a few characters, which are put together only when asked for."""

    index: int
    given_id: str
    wire_index: int | None
    name: str = ""
    started: bool = False
    fragments: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The arguments so far."""
        return "".join(self.fragments)

    @property
    def complete(self) -> bool:
        """Whether the arguments so far are a whole JSON value."""
        try:
            orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return False
        return True


class ToolCallAssembly:
    """Maps fragments to calls.

    Seen in the wild: no index, no id, a new id in every fragment, index 0 for every call, the whole call in one
    fragment, arguments as an object, the name repeated, the arguments before the name.
    """

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self._ids: set[str] = set()

    def take(self, fragments: object) -> list[ToolCallStart | ToolCallDelta]:
        """Return the events of one delta's `tool_calls`; what is not a list of objects is ignored."""
        events: list[ToolCallStart | ToolCallDelta] = []
        if isinstance(fragments, list):
            for fragment in fragments:
                if isinstance(fragment, dict):
                    self._take_one(fragment, events)
        return events

    def end(self) -> list[ToolCallStart | ToolCallDelta]:
        """Return the events of calls that never got a name: the loop answers them as an unknown tool."""
        events: list[ToolCallStart | ToolCallDelta] = []
        for slot in self.slots:
            if not slot.started:
                self._start(slot, UNNAMED, events)
        return events

    def _take_one(self, fragment: dict[str, Any], events: list[ToolCallStart | ToolCallDelta]) -> None:
        function = fragment.get("function")
        if not isinstance(function, dict):
            function = {}
        name = function.get("name")
        name = name if isinstance(name, str) else ""
        call_id = fragment.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        wire_index = fragment.get("index")
        wire_index = wire_index if isinstance(wire_index, int) else None
        slot = self._find(wire_index, call_id, name)
        if slot is None:
            slot = self._open(wire_index, call_id)
        if not slot.given_id:
            slot.given_id = call_id
        if name and not slot.started:
            self._start(slot, name, events)
        arguments = argument_text(function.get("arguments"))
        if arguments:
            slot.fragments.append(arguments)
            if slot.started:
                events.append(ToolCallDelta(slot.index, arguments))

    def _find(self, wire_index: int | None, call_id: str, name: str) -> Slot | None:
        """Return the call that a fragment continues; None when it opens one."""
        if wire_index is not None:
            known = [slot for slot in self.slots if slot.wire_index == wire_index]
            if not known:
                return None
            slot = known[-1]
            another = bool(name and call_id and slot.given_id and call_id != slot.given_id and slot.started)
            return None if another and slot.complete else slot
        if call_id:
            for slot in self.slots:
                if slot.given_id == call_id:
                    return slot
        if not self.slots:
            return None
        last = self.slots[-1]
        if not name:
            return last
        return last if last.name == name and not call_id and last.fragments and not last.complete else None

    def _open(self, wire_index: int | None, call_id: str) -> Slot:
        if len(self.slots) >= MOST_CALLS:
            raise ModelProviderError(f"The model asked for more than {MOST_CALLS} tools at once.")
        slot = Slot(len(self.slots), call_id, wire_index)
        self.slots.append(slot)
        return slot

    def _start(self, slot: Slot, name: str, events: list[ToolCallStart | ToolCallDelta]) -> None:
        slot.name = clean(name)
        slot.started = True
        usable = 0 < len(slot.given_id) <= LONGEST_ID and slot.given_id not in self._ids
        call_id = slot.given_id if usable else f"call_{new_id()}"
        self._ids.add(call_id)
        events.append(ToolCallStart(slot.index, call_id, slot.name))
        if slot.fragments:
            events.append(ToolCallDelta(slot.index, slot.arguments))


def argument_text(value: object) -> str:
    """Return arguments as JSON text; some servers send the object itself."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return ""
