"""One immutable snapshot of everything a run was started with; every tool call receives the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from popagent_agent.company import Company
from popagent_agent.hooks import Hooks, NoHooks
from popagent_agent.mailbox import Mailbox
from popagent_agent.skills import Skill
from popagent_models.profile import ModelProfile
from popagent_models.routing import Route
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_sandbox.brief import RepoBrief
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.ledger import ReadLedger
from popagent_web.search import WebSearch

Access = Literal["read", "write", "exec"]
WorkspaceAccess = Literal["none", "read-only", "read-write"]


@dataclass(frozen=True, slots=True)
class RunWorkspace:
    """The checkout a run works in; `folder` stays open until the run has ended. `brief` is None where none was made.

    With the access "none" it is there for specialists alone. `commands` runs programs in it, None where nothing may
    run; who made it closes it before the folder.
    """

    id: str
    name: str
    folder: ContainedFolder
    access: WorkspaceAccess
    brief: RepoBrief | None = None
    commands: Commands | None = None

    @property
    def root(self) -> Path:
        """The directory on this machine, never shown to a model."""
        return self.folder.root

    @property
    def offers_research(self) -> bool:
        """Tell whether there is something here that a researcher could look at, if its own rights allow it."""
        return self.brief is None or self.brief.research


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """An agent as stored when the run began; `tools` are names of the catalogue in order of importance.

    `description` tells a supervisor what to ask it for. `route` and `model` are its own, decided when the run began;
    without them nothing can be delegated to it. `skills` are those that are enabled, by name.
    """

    id: str
    name: str
    instructions: str
    tools: tuple[str, ...] = ()
    workspace_access: WorkspaceAccess = "none"
    description: str = ""
    delegable: bool = False
    route: Route | None = None
    model: ModelProfile | None = None
    skills: tuple[Skill, ...] = ()


class Policy(Protocol):
    """What this run may do beyond what its tools are."""

    def refusal(self, tool: str, access: Access) -> str | None:
        """Return the sentence that tells the model why it may not use the tool, None when it may."""

    def of_specialist(self, access: WorkspaceAccess) -> Policy:
        """Return what holds for a specialist of this run that may use the workspace so."""


@dataclass(frozen=True, slots=True)
class WorkspacePolicy:
    """The rule of ordinary runs: what changes things needs a writable workspace."""

    access: WorkspaceAccess

    def refusal(self, tool: str, access: Access) -> str | None:
        """Refuse whatever is not read-only in a workspace that is not writable."""
        if access == "read" or self.access == "read-write":
            return None
        return f"{tool} is not allowed here: this run may read the workspace and change nothing."

    def of_specialist(self, access: WorkspaceAccess) -> Policy:
        """A specialist's own rights hold, whatever its supervisor may do itself."""
        return WorkspacePolicy(access)


@dataclass(frozen=True, slots=True)
class RunContext:
    """Read once at the start of a run; nothing in it is read again while the run lasts.

    `agents` are those that work can be given to, in order of use. `thread_id` and `resource_id` are set in the run of a
    delegate: whatever it says belongs there and not to the session. `mail` is there if others can be written to.

    `reads` alone grows: it knows what this run has read of its files. A context made from another one, for a delegate,
    begins with none, since nobody may change what only another agent has seen.
    """

    turn_id: str
    session_id: str
    trace_id: str | None
    settings: AgentRuntimeView
    agent: AgentProfile
    route: Route
    model: ModelProfile
    workspace: RunWorkspace | None = None
    policy: Policy = field(default_factory=lambda: WorkspacePolicy("read-only"))
    requested_model: str | None = None
    hooks: Hooks = field(default_factory=NoHooks)
    agents: tuple[AgentProfile, ...] = ()
    thread_id: str | None = None
    resource_id: str | None = None
    web: WebSearch | None = None
    company: Company | None = None
    mail: Mailbox | None = field(default=None, repr=False, compare=False)
    reads: ReadLedger = field(default_factory=ReadLedger, init=False, repr=False, compare=False)

    def attributes(self) -> dict[str, str | int]:
        """Return what every span of this run is named by."""
        named: dict[str, str | int] = {
            "gen_ai.agent.id": self.agent.id,
            "gen_ai.agent.name": self.agent.name,
            "gen_ai.conversation.id": self.session_id,
            "gen_ai.request.model": self.route.model,
            "popagent.turn.id": self.turn_id,
            "popagent.route.source": self.route.source,
            "popagent.route.reason": self.route.reason,
            "popagent.settings.revision": self.settings.revision,
        }
        if self.thread_id is not None:
            named["popagent.thread.id"] = self.thread_id
        if self.workspace is not None:
            named["popagent.workspace.id"] = self.workspace.id
            named["popagent.workspace.access"] = self.workspace.access
        return named
