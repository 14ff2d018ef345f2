"""Skills at hand: a run begins with those that are enabled then, and their texts are read once for each change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from popagent_agent.skills import Skill
from popagent_chat.skills import store
from popagent_chat.skills.store import SkillStamp
from popagent_db.pool import Connection


@dataclass(frozen=True, slots=True)
class _Kept:
    updated_at: datetime
    skill: Skill


class SkillShelf:
    """Remembers what the last run began with, and nothing else: as much as the bounds of skills allow."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    async def of(self, conn: Connection, stamps: Sequence[SkillStamp]) -> dict[str, tuple[Skill, ...]]:
        """Return the skills by the id of their agent, in the order of the stamps, each as it is stored now."""
        kept = {stamp.id: known for stamp in stamps if (known := self._known(stamp)) is not None}
        missing = [stamp.id for stamp in stamps if stamp.id not in kept]
        if missing:
            for text in await store.TEXTS.all(conn, missing):
                skill = Skill(text.name, text.description, text.instructions, text.references)
                kept[text.id] = _Kept(text.updated_at, skill)
        self._kept = kept
        found: dict[str, tuple[Skill, ...]] = {}
        for stamp in stamps:
            if stamp.id in kept:
                found[stamp.agent_id] = (*found.get(stamp.agent_id, ()), kept[stamp.id].skill)
        return found

    def _known(self, stamp: SkillStamp) -> _Kept | None:
        known = self._kept.get(stamp.id)
        return known if known is not None and known.updated_at == stamp.updated_at else None
