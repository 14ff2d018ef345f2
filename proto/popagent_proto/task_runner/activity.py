"""The transcript of a task: what its agents said and did, the newest records of it."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Moment, View

# Older records make room for new ones.
RECORDS_KEPT: Final = 256
ACTIVITY_CHARACTERS: Final = 8_000
CALLS_A_RECORD: Final = 32

ActivityKind = Literal["step-start", "text", "tool-call", "step", "status"]
CallStatus = Literal["running", "completed", "failed", "denied"]


class ActivityCall(View):
    """A tool call. Secrets are blanked, and what is long is cut, before it is stored."""

    call_id: str = Field(max_length=200)
    tool: str = Field(max_length=200)
    arguments: Any = Field(default=None, description="Cut to a text when they are longer than a record may be.")
    result: str | None = Field(default=None, max_length=ACTIVITY_CHARACTERS)
    error: str | None = Field(default=None, max_length=ACTIVITY_CHARACTERS)
    status: CallStatus = "running"


class Activity(View):
    """What an agent did: a step began, words came, a tool was called, a step ended; or a sentence of the runner's."""

    kind: ActivityKind
    agent_id: str | None = Field(default=None, max_length=64)
    step: int = Field(default=0, ge=0, description="Counts the model calls of one agent's run from 1.")
    text: str = Field(default="", max_length=ACTIVITY_CHARACTERS)
    finish_reason: str | None = Field(default=None, max_length=100, description="Of an ended step.")
    calls: list[ActivityCall] = Field(default_factory=list, max_length=CALLS_A_RECORD)


class ActivityRecord(Activity):
    """A stored record. The text of a running step grows: the record keeps its `seq` and gets a higher `revision`."""

    seq: int = Field(description="The order of the transcript.")
    revision: int = Field(description="Rises with every write of this transcript.")
    attempt: int
    at: Moment


class TranscriptPage(View):
    """Records of one task in their order, newest page first; `previous_cursor` asks for those before these."""

    task_id: Id
    records: list[ActivityRecord]
    previous_cursor: int | None
    revision: int = Field(description="Ask for what came after this one.")
