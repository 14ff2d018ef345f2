"""What work outside a chat may name: other services keep the ids, this service knows whether they mean something."""

from __future__ import annotations

from typing import ClassVar

from popagent_kit.ids import Id
from popagent_proto.base import Query, View
from popagent_proto.chat.models import ModelId


class WorkPlace(View):
    """Where the work will be done."""

    workspace_id: Id


class CheckWork(Query[WorkPlace]):
    """Check the workspace, the agent and the model that a task or a schedule names.

    422 names the field (`workspaceId`, `agentId`, `model`). Without a workspace the answer is the default one; an agent
    is the orchestrator or one that work can be given to.
    """

    subject: ClassVar = "popagent.chat.qry.work-check.v1"

    workspace_id: Id | None = None
    agent_id: Id | None = None
    model: ModelId | None = None
