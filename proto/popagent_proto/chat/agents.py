"""Profiles of the agents, the check of them, and the company's roster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, Line, ListView, Moment, Query, Text, View, Wire, not_blank
from popagent_proto.chat.models import ModelId

WorkspaceAccess = Literal["none", "read-only", "read-write"]
ToolAccess = Literal["read", "write", "exec"]
Severity = Literal["fault", "note"]

# The user's spelling; the one agent that a person talks to (CH-1).
ORCHESTRATOR: Final = "orchistrator"
LONGEST_INSTRUCTIONS: Final = 20_000
LONGEST_URL: Final = 2_000
MOST_TOOLS: Final = 64


def _web_address(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable or any(char.isspace() or not char.isprintable() for char in text):
        raise ValueError("must be an http or https address")
    return text


def _each_once(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"names {name!r} more than once")
    return names


AgentName = Annotated[Line, Field(min_length=1, max_length=80)]
DelegationDescription = Annotated[Text, Field(min_length=1, max_length=1_000), AfterValidator(not_blank)]
Instructions = Annotated[Text, Field(min_length=1, max_length=LONGEST_INSTRUCTIONS), AfterValidator(not_blank)]
WebAddress = Annotated[
    Text,
    Field(min_length=1, max_length=LONGEST_URL, json_schema_extra={"format": "uri"}),
    AfterValidator(_web_address),
]
ToolName = Annotated[Line, Field(min_length=1, max_length=100)]
ToolNames = Annotated[list[ToolName], Field(max_length=MOST_TOOLS), AfterValidator(_each_once)]


class AgentView(View):
    """A stored profile: all that makes an agent what it is; bounds are stated on AgentPatch."""

    id: Id
    name: str
    delegation_description: str
    instructions: str
    source_url: str | None
    workspace_access: WorkspaceAccess
    browser_access: bool
    delegable: bool
    tools: list[str] = Field(description="In order of importance: a small model is offered the first ones.")
    model_override: str | None
    override_is_seeded: bool = Field(
        description="The override came with popagent: where the model server does not offer it, it is passed over."
    )
    revision: int = Field(description="Rises with every change; send it with PATCH. 0: as popagent came.")
    updated_at: Moment

    @property
    def takes_work(self) -> bool:
        """Whether tasks, schedules and posts may name it: the orchestrator, or one that it delegates to."""
        return self.delegable or self.id == ORCHESTRATOR


class ToolView(View):
    """A tool that a profile may name."""

    name: str
    access: ToolAccess = Field(description="What it may do; all but `read` need read-write access to the workspace.")
    description: str = Field(description="What the model is told about it.")


class AgentList(ListView):
    """Every agent, the orchestrator first, then as in the company's roster."""

    items: list[AgentView]
    tools: list[ToolView] = Field(description="Every tool there is.")


class ListAgents(Query[AgentList]):
    """All of them at once: there are few."""

    subject: ClassVar = "popagent.chat.qry.agents-list.v1"


class AgentPatch(Wire):
    """Fields to change; an absent one stays. Only `sourceUrl` and `modelOverride` may be null."""

    revision: int = Field(ge=0, description="The one you saw last.")
    name: AgentName | None = None
    delegation_description: DelegationDescription | None = Field(
        default=None, description="Tells the orchestrator what to delegate to this agent."
    )
    instructions: Instructions | None = Field(
        default=None, description="The whole of its guidance, in every run's prompt."
    )
    source_url: WebAddress | None = Field(default=None, description="Where the guidance comes from.")
    workspace_access: WorkspaceAccess | None = None
    browser_access: bool | None = None
    delegable: bool | None = Field(default=None, description="The orchestrator itself cannot be.")
    tools: ToolNames | None = Field(
        default=None, description="Names of tools that exist, each once, in order of importance."
    )
    model_override: ModelId | None = Field(
        default=None, description="Used before the request's model and the default; null: inherit."
    )


class UpdateAgent(Command[AgentView]):
    """Change a profile for the runs that begin from now on.

    An old revision answers 409 with the stored agent; an unknown tool or a model that is not offered, 422.
    """

    subject: ClassVar = "popagent.chat.cmd.agents-update.v1"

    command_id: Id
    agent_id: Id
    body: AgentPatch


class AgentFinding(View):
    """One thing that is not as it should be in a profile or an enabled skill, or that one should know."""

    agent_id: Id
    code: str = Field(description="For programs; the list is in docs/api.md.")
    severity: Severity = Field(description="A note needs no repair and does not count for `ok`.")
    field: str | None = Field(default=None, description="Which field of the profile, or of the skill.")
    skill_id: Id | None = Field(default=None, description="Which of its skills; null: the profile itself.")
    message: str
    fix: str = Field(description="What to do, in words.")


class AgentHealthView(View):
    """The same profiles, skills, tools and models give the same findings in the same order."""

    ok: bool = Field(description="There is no fault.")
    agents: int = Field(description="How many were looked at.")
    skills: int = Field(default=0, description="How many enabled skills were looked at.")
    models_known: bool = Field(description="False while the model server does not list its models: none is checked.")
    findings: list[AgentFinding]


class CheckAgents(Query[AgentHealthView]):
    """Check every stored profile and every enabled skill; asks no model."""

    subject: ClassVar = "popagent.chat.qry.agents-health.v1"


class CompanyMember(View):
    """An identity. One that is no agent has a name and nothing else; it costs no model call."""

    id: Id
    name: str = Field(description="Of an agent, the one in its profile.")
    title: str
    is_agent: bool
    delegable: bool = Field(description="The orchestrator may delegate to it.")


class CompanyDepartment(View):
    """Members in the order of the roster."""

    id: Id
    name: str
    purpose: str
    members: list[CompanyMember]


class CompanyView(View):
    """The roster, by department."""

    departments: list[CompanyDepartment]


class GetCompany(Query[CompanyView]):
    """The roster is fixed; who of it is an agent, and delegable, is as stored now."""

    subject: ClassVar = "popagent.chat.qry.company-get.v1"


class AgentChanged(Event):
    """Runs that begin from now on use the new profile; `GET /api/agents` has it."""

    subject: ClassVar = "popagent.chat.evt.agents-changed.v1"

    agent_id: Id
    name: str
    changed: list[str] = Field(description="Names of the fields.")
