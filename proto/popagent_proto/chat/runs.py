"""What a run outside of a chat begins with: read at one moment, and carried through the run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Query, Text, View
from popagent_proto.chat.agents import AgentView
from popagent_proto.chat.hooks import HookEvent, HookKind, OnFailure
from popagent_proto.chat.secrets import Sealed
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_proto.chat.workspaces import WorkspaceView
from popagent_proto.common import BlobRef

# What the boxes of a snapshot are sealed for, with the resource and the name of the secret behind it.
RUN_SECRET_PURPOSE: Final = "runs"  # noqa: S105 (it names what secrets are for)


SealTo = Annotated[Text, Field(max_length=100, description="The public key of the asking process, X25519, base64url.")]


class RunHook(View):
    """An enabled hook, in the order in which they run."""

    id: Id
    name: str
    event: HookEvent
    matcher: str
    kind: HookKind
    url: str
    argv: list[str]
    timeout_ms: int
    on_failure: OnFailure
    sealed_secret: Sealed | None


class RunHooks(View):
    """Enabled hooks; secrets are sealed to whoever asked."""

    items: list[RunHook]


class GetRunHooks(Query[RunHooks]):
    """Hooks of one event, in the order in which they run, for what is told outside of a run."""

    subject: ClassVar = "popagent.chat.qry.runs-hooks.v1"

    event: HookEvent
    seal_to: SealTo


class RunModel(View):
    """The model server that answers at this moment; `url` is null when none is connected."""

    url: str | None
    sealed_key: Sealed | None
    revision: str = Field(description="Another one when address or key is another.")


class RunSkill(View):
    """An enabled skill of one agent."""

    agent_id: Id
    name: str
    description: str
    instructions: str
    references: dict[str, str]


class RunSkills(View):
    """All of them; large ones travel as a blob."""

    items: list[RunSkill]


class RunSnapshot(View):
    """Settings, agents, workspace, hooks and model as they are now. Secrets are sealed to whoever asked."""

    settings: AgentRuntimeView
    model: RunModel
    agent: AgentView
    delegable: list[AgentView] = Field(description="Whom the agent can give work to, in the order of the company.")
    workspace: WorkspaceView
    hooks: list[RunHook]
    skills: RunSkills | None
    skills_blob: BlobRef | None = Field(description="Holds RunSkills when they are too large for a message.")


class GetRunSnapshot(Query[RunSnapshot]):
    """Asked once at the beginning of a run; 422 naming the field for an agent or a workspace that is not there."""

    subject: ClassVar = "popagent.chat.qry.runs-snapshot.v1"

    workspace_id: Id
    agent_id: Id | None = Field(default=None, description="The orchestrator when absent.")
    seal_to: SealTo
