"""Which events a client may follow, by topic: the one table between subjects and the names on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import one_line
from popagent_proto.base import Event
from popagent_proto.chat.agents import AgentChanged
from popagent_proto.chat.channels import ChannelMessageChanged, ChannelSettingsChanged
from popagent_proto.chat.hooks import HookChanged, HookDeleted
from popagent_proto.chat.jobs import JobChanged
from popagent_proto.chat.models import ModelConnectionChanged
from popagent_proto.chat.sessions import SessionChanged, SessionDeleted
from popagent_proto.chat.settings import AgentRuntimeChanged
from popagent_proto.chat.skills import SkillChanged, SkillDeleted
from popagent_proto.chat.turns import TurnEnded, TurnStarted
from popagent_proto.chat.workspaces import WorkspaceChanged, WorkspaceDeleted, WorkspaceRegistered
from popagent_proto.docs_indexer.imports import DocsJobChanged
from popagent_proto.docs_indexer.pages import DocsPageChanged, DocsPageDeleted
from popagent_proto.docs_indexer.tree import DocsTreeChanged
from popagent_proto.scheduler import ScheduleChanged, ScheduleDeleted
from popagent_proto.task_runner.tasks import TaskChanged, TaskDeleted, TaskInterrupted, TaskStarted, TaskStopped

# No service tells of it: the gateway watches health itself while somebody listens.
HEALTH: Final = "health"
TOPICS: Final[dict[str, tuple[type[Event], ...]]] = {
    "sessions": (SessionChanged, SessionDeleted),
    "turns": (TurnStarted, TurnEnded),
    "workspaces": (WorkspaceRegistered, WorkspaceChanged, WorkspaceDeleted),
    "settings": (AgentRuntimeChanged, ModelConnectionChanged),
    "agents": (AgentChanged,),
    "skills": (SkillChanged, SkillDeleted),
    "hooks": (HookChanged, HookDeleted),
    "jobs": (JobChanged, DocsJobChanged),
    "tasks": (TaskChanged, TaskStarted, TaskStopped, TaskInterrupted, TaskDeleted),
    "schedules": (ScheduleChanged, ScheduleDeleted),
    "channels": (ChannelMessageChanged, ChannelSettingsChanged),
    "docs": (DocsPageChanged, DocsPageDeleted, DocsTreeChanged),
    HEALTH: (),
}
TOPIC_OF: Final = {event.subject: topic for topic, events in TOPICS.items() for event in events}


def parse_topics(text: str) -> frozenset[str]:
    """Return the topics named in `text`, separated by commas.

    Raises:
        InvalidInputError: An unknown topic, or none.
    """
    wanted = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(wanted - TOPICS.keys())
    if unknown or not wanted:
        known = ", ".join(TOPICS)
        reason = f"there is no topic {one_line(unknown[0], 40)}" if unknown else "name at least one topic"
        raise InvalidInputError(f"topics: {reason}; known are {known}", field="topics")
    return wanted


def subjects_of(topics: Iterable[str]) -> frozenset[str]:
    """Return the subjects whose events belong to these topics."""
    return frozenset(event.subject for topic in topics for event in TOPICS[topic])
