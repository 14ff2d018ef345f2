"""A hook as a run needs it, and what is written down of it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from popagent_proto.chat.hooks import HookDecision, HookEvent, HookKind, HookStatus, OnFailure

# Where the secrets of hooks lie; each has the id of its hook for a name.
RESOURCE: Final = "hooks"


class StoredHook(BaseModel):
    """A hook that is asked; `sealed` is the blob of its secret in hexadecimal digits."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    event: HookEvent
    matcher: str
    kind: HookKind
    url: str
    argv: list[str]
    timeout_ms: int
    on_failure: OnFailure
    sealed: str | None = Field(repr=False)


class HookRun(BaseModel):
    """What a hook did, as it is stored."""

    model_config = ConfigDict(frozen=True)

    id: str
    about_id: str
    """The session or the task in whose audit it stands."""
    turn_id: str | None
    trace_id: str | None
    event: HookEvent
    hook_id: str
    hook_name: str
    subject: str
    decision: HookDecision | None
    reason: str
    status: HookStatus
    input: Any
    output: str
    duration_ms: int
