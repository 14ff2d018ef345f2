"""What a run begins with, asked of chat at its beginning and never again."""

from __future__ import annotations

from popagent_agent.skills import Skill
from popagent_bus import Bus, blobs
from popagent_proto.chat.runs import GetRunSnapshot, RunHook, RunModel, RunSkills, RunSnapshot
from popagent_runs.hooks.rows import StoredHook
from popagent_runs.models.choice import StoredConnection
from popagent_runs.stored import Skills, StoredRun
from popagent_task_runner.agents.process_key import ProcessKey, as_blob


class Snapshots:
    """Asks, and keeps one model connection as long as chat says it is the same, so that its clients live on."""

    def __init__(self, bus: Bus, key: ProcessKey) -> None:
        self._bus = bus
        self._key = key
        self._model = RunModel(url=None, sealed_key=None, revision="")
        self._changes = 0

    async def take(self, workspace_id: str, agent_id: str | None) -> StoredRun:
        """Return what the run begins with.

        Raises:
            InvalidInputError: The workspace or the agent is gone.
            UnavailableError, NoAnswerError: Chat cannot be reached.
        """
        asked = GetRunSnapshot(workspace_id=workspace_id, agent_id=agent_id, seal_to=self._key.public)
        snapshot = await self._bus.ask(asked)
        return StoredRun(
            # The connection that chat chose is the only one here.
            settings=snapshot.settings.model_copy(update={"model_source": "auto"}),
            connection=self._connection(snapshot.model),
            agent=snapshot.agent,
            delegable=snapshot.delegable,
            workspace=snapshot.workspace,
            hooks=[stored_hook(hook) for hook in snapshot.hooks],
            skills=await self._skills(snapshot),
        )

    def _connection(self, model: RunModel) -> StoredConnection:
        if model.revision != self._model.revision:
            self._model = model
            self._changes += 1
        return StoredConnection(url=self._model.url, revision=self._changes, sealed=as_blob(self._model.sealed_key))

    async def _skills(self, snapshot: RunSnapshot) -> Skills:
        found = snapshot.skills
        if found is None and snapshot.skills_blob is not None:
            found = RunSkills.decode(await blobs.get(self._bus, snapshot.skills_blob))
        skills: dict[str, tuple[Skill, ...]] = {}
        for each in found.items if found is not None else ():
            skill = Skill(each.name, each.description, each.instructions, each.references)
            skills[each.agent_id] = (*skills.get(each.agent_id, ()), skill)
        return skills


def stored_hook(hook: RunHook) -> StoredHook:
    """Return a hook as runs ask it; its secret was sealed to this process."""
    return StoredHook(**hook.model_dump(exclude={"sealed_secret"}), sealed=as_blob(hook.sealed_secret))
