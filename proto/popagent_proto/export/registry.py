"""Every message and every shape on HTTP, found by importing the modules that declare them."""

from __future__ import annotations

import importlib
import pkgutil

from pydantic import BaseModel

import popagent_proto
from popagent_proto import http
from popagent_proto.base import Message, Request
from popagent_proto.chat.agents import AgentPatch
from popagent_proto.chat.channels import ChannelSettingsPatch, EditBody, PostBody, ReadBody
from popagent_proto.chat.messages import AgentActivity, MessageMetadata, TextMetadata, ToolMetadata
from popagent_proto.chat.sessions import CreateSessionBody, PatchSessionBody, SaveSessionBody, SetHeadBody
from popagent_proto.chat.settings import AgentRuntimePatch
from popagent_proto.chat.skills import SkillFields, SkillPatch
from popagent_proto.chat.turns import ChatRequest
from popagent_proto.chat.workspaces import PatchWorkspaceBody, RegisterWorkspaceBody
from popagent_proto.common import JobView
from popagent_proto.docs_indexer.pages import CreatePageBody, MoveBody, RestoreBody, WritePageBody
from popagent_proto.docs_indexer.tree import FolderBody
from popagent_proto.scheduler import ScheduleChanges, ScheduleFields
from popagent_proto.task_runner.tasks import CreateTaskBody, ResolveTaskBody


def messages() -> list[type[Message]]:
    """Return every message that has a subject, in order of subject."""
    for module in pkgutil.walk_packages(popagent_proto.__path__, "popagent_proto."):
        if not module.name.startswith("popagent_proto.export"):
            importlib.import_module(module.name)
    return [Message.registry[subject] for subject in sorted(Message.registry)]


def replies() -> list[type[BaseModel]]:
    """Return every reply class once, by name."""
    found = {message.reply_type() for message in messages() if issubclass(message, Request)}
    return sorted(found, key=lambda reply: reply.__name__)


def http_shapes() -> list[type[BaseModel]]:
    """Return the bodies and answers that exist on HTTP only."""
    return [
        http.AddWorkspaceBody,
        AgentPatch,
        AgentRuntimePatch,
        ChannelSettingsPatch,
        ChatRequest,
        http.CreateHookBody,
        CreateSessionBody,
        CreatePageBody,
        CreateTaskBody,
        EditBody,
        http.ErrorBody,
        FolderBody,
        JobView,
        MessageMetadata,
        http.ModelConnectionBody,
        http.ModelConnectionTestBody,
        MoveBody,
        http.PatchHookBody,
        PatchSessionBody,
        PatchWorkspaceBody,
        PostBody,
        ReadBody,
        RegisterWorkspaceBody,
        ResolveTaskBody,
        RestoreBody,
        SaveSessionBody,
        ScheduleChanges,
        ScheduleFields,
        SetHeadBody,
        SkillFields,
        SkillPatch,
        http.SuiteHealthView,
        WritePageBody,
        AgentActivity,
        TextMetadata,
        ToolMetadata,
    ]
