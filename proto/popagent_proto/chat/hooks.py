"""Hooks: programs of the operator's own that are asked before something happens, or told after it did."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire
from popagent_proto.chat.secrets import Sealed
from popagent_proto.chat.sessions import DeletedView

# What a sealed secret of a hook may be used for.
HOOK_SECRET_PURPOSE: Final = "hooks.secret"  # noqa: S105 (it names what secrets are for)
MOST_HOOKS: Final = 100

HookEvent = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "TaskStart",
    "TaskStop",
    "Stop",
    "SessionEnd",
]
HookKind = Literal["http", "command"]
OnFailure = Literal["allow", "block"]
HookDecision = Literal["allow", "deny"]
HookStatus = Literal["ok", "denied", "timeout", "error", "skipped"]

HookName = Annotated[Line, Field(min_length=1, max_length=120)]
Matcher = Annotated[
    Text,
    Field(
        min_length=1,
        max_length=200,
        description="`*`, or a regular expression (RE2) that the whole name of the tool must match, such as "
        "`write|edit`; of SubagentStart and SubagentStop the specialist's id. Other events have nothing to match: `*`.",
    ),
]
HookUrl = Annotated[
    Text,
    Field(
        max_length=2_000,
        description="Of the kind http: where the event is posted; its origin must be one of POPAGENT_HOOK_ORIGINS.",
    ),
]
Argument = Annotated[Text, Field(max_length=1_000)]
Argv = Annotated[
    list[Argument],
    Field(
        max_length=32,
        description="Of the kind command: a program and its arguments, without a shell. The folder that "
        "POPAGENT_HOOK_FOLDER names is /hooks.",
    ),
]
TimeoutMs = Annotated[int, Field(ge=100, le=30_000, description="Milliseconds; of all of the answer.")]
OrderIndex = Annotated[
    int, Field(ge=0, le=10_000, description="Hooks of one event run one after another, the lowest first.")
]


class HookView(View):
    """A hook. UserPromptSubmit, PreToolUse, SubagentStart and Stop may refuse; the other events are only told."""

    id: Id
    name: str
    event: HookEvent
    matcher: str
    kind: HookKind
    url: str = Field(description="Empty for a command.")
    argv: list[str] = Field(default_factory=list, description="Empty but for a command.")
    has_secret: bool = Field(description="Requests are signed with it; it is never told.")
    timeout_ms: int
    on_failure: OnFailure = Field(description="What counts when the hook fails, hangs or answers nonsense.")
    order_index: int
    enabled: bool
    revision: int
    created_at: Moment
    updated_at: Moment


class HookList(ListView):
    """In the order in which they run, never more than MOST_HOOKS; and where the operator lets new ones be."""

    items: list[HookView]
    origins: list[str] = Field(default_factory=list, description="What URLs may begin with: POPAGENT_HOOK_ORIGINS.")
    commands_problem: str | None = Field(
        default=None, description="Why no program can be a hook, and what to do; null when one can."
    )


class ListHooks(Query[HookList]):
    """All of them."""

    subject: ClassVar = "popagent.chat.qry.hooks-list.v1"


class HookFields(Wire):
    """What a hook is made of."""

    name: HookName
    event: HookEvent
    matcher: Matcher = "*"
    kind: HookKind = "http"
    url: HookUrl = ""
    argv: Argv = Field(default_factory=list)
    timeout_ms: TimeoutMs = 5_000
    on_failure: OnFailure | None = Field(
        default=None, description="By default `block` where the event may be refused. Other events know only `allow`."
    )
    order_index: OrderIndex = 100
    enabled: bool = True


class CreateHook(Command[HookView]):
    """Store a hook; the next run uses it. A repeated `command_id` gives the stored one."""

    subject: ClassVar = "popagent.chat.cmd.hooks-create.v1"

    command_id: Id
    fields: HookFields
    sealed_secret: Sealed | None = None


class HookChanges(Wire):
    """What is absent stays as it is; null is accepted nowhere."""

    revision: int = Field(ge=0, description="The one you saw last.")
    name: HookName | None = None
    event: HookEvent | None = None
    matcher: Matcher | None = None
    kind: HookKind | None = None
    url: HookUrl | None = None
    argv: Argv | None = None
    timeout_ms: TimeoutMs | None = None
    on_failure: OnFailure | None = None
    order_index: OrderIndex | None = None
    enabled: bool | None = None


class UpdateHook(Command[HookView]):
    """Change a hook; 409 with the stored `hook` when the revision is old.

    An absent `sealed_secret` keeps the secret, null removes it.
    """

    subject: ClassVar = "popagent.chat.cmd.hooks-update.v1"

    command_id: Id
    hook_id: Id
    changes: HookChanges
    sealed_secret: Sealed | None = None


class DeleteHook(Command[DeletedView]):
    """Delete a hook and its secret; what it did stays in the sessions' audit."""

    subject: ClassVar = "popagent.chat.cmd.hooks-delete.v1"

    hook_id: Id


class HookTrialView(View):
    """How a hook answered an example of its event."""

    status: HookStatus
    decision: HookDecision | None = Field(description="What would count; null for an event that is only told.")
    reason: str
    sent: dict[str, Any] = Field(
        default_factory=dict, description="What it was sent; a program reads it on its standard input."
    )
    output: str = Field(description="What it answered, cut and without secrets.")
    duration_ms: int


class TryHook(Command[HookTrialView]):
    """Run a hook once on an example, for 15 s at most, also one that is turned off; nothing is stored."""

    subject: ClassVar = "popagent.chat.cmd.hooks-test.v1"
    answer_within_s: ClassVar = 17.0

    hook_id: Id


class HookRunView(View):
    """One run of a hook, or why it did not run; `skipped`: another hook had refused before."""

    id: Id
    seq: int = Field(description="Rises with every run.")
    turn_id: Id | None = Field(description="Of the turn, or of the attempt of the task.")
    trace_id: str | None
    event: HookEvent
    hook_id: Id
    hook_name: str
    subject: str = Field(description="The tool's name, or the specialist's id; empty for events of other things.")
    decision: HookDecision | None
    reason: str = Field(max_length=2_000)
    status: HookStatus
    input: Any = Field(description="What it was told, cut and without secrets.")
    output: str = Field(description="What it answered, cut and without secrets.")
    duration_ms: int
    at: Moment


class HookRunList(ListView):
    """In the order in which they ran."""

    items: list[HookRunView]


class ListHookRuns(Query[HookRunList]):
    """The audit of one session; a page holds at most `limit` runs and about 800 kB."""

    subject: ClassVar = "popagent.chat.qry.hooks-runs.v1"

    session_id: Id
    turn_id: Id | None = None
    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class HookChanged(Event):
    """A hook was made or changed; runs that begin now use it."""

    subject: ClassVar = "popagent.chat.evt.hooks-changed.v1"

    hook: HookView


class HookDeleted(Event):
    """A hook is gone."""

    subject: ClassVar = "popagent.chat.evt.hooks-deleted.v1"

    hook_id: Id
