"""Twenty supervisors at once with three specialists each, over the real service: none is lost and none stays behind."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply, call
from popagent_testing.model_server import ModelServer
from popagent_testing.suite_bus import until
from services.chat.tests.running import Chat, Door

SUPERVISORS: Final = 20
SPECIALISTS: Final = ("researcher", "implementer", "reviewer")
# A round may leave so many objects more at hand; one kept of each turn would be twenty, of each specialist sixty.
FEW: Final = 10


def script(model: ModelServer, folder: Path, name: str) -> None:
    """Let the turn that asks about `name` give work to three; each reads a file of its own and reports."""
    for agent in SPECIALISTS:
        (folder / f"{agent}-{name}.md").write_text(f"Written for the {agent} of {name}.\n")
        look = call("read", path=f"{agent}-{name}.md")
        model.script(
            Reply(text="I look.", tool_calls=(look,), when=f"Task of the {agent}, {name}."),
            Reply(text=f"The {agent} saw {name}.", when=f"Written for the {agent} of {name}."),
        )
    given = tuple(call(f"agent-{agent}", prompt=f"Task of the {agent}, {name}.") for agent in SPECIALISTS)
    model.script(
        Reply(tool_calls=given, when=f"What about {name}?"),
        Reply(text=f"All of {name}.", when=f"The {SPECIALISTS[-1]} saw {name}."),
    )


async def asked_at_once(door: Door, model: ModelServer, folder: Path, start: int) -> list[dict[str, Any]]:
    """Ask twenty at once; return their stored answers, each of which is what its own specialists said."""
    names = [f"n{number:03d}" for number in range(start, start + SUPERVISORS)]
    for name in names:
        script(model, folder, name)
    turns = await asyncio.gather(*(door.say(f"What about {name}?", new_id()) for name in names))
    stored = [(await door.stored(turn.view.session_id))[-1] for turn in turns]
    for name, answer in zip(names, stored, strict=True):
        parts = [part for part in answer["parts"] if part["type"].startswith("tool-agent-")]
        assert [part["output"] for part in parts] == [f"The {agent} saw {name}." for agent in SPECIALISTS]
        assert answer["parts"][-1]["text"] == f"All of {name}."
    return stored


def ours() -> Counter[str]:
    """Return how many objects of our own classes there are, those of the scripted model apart."""
    gc.collect()
    names = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in names if name.startswith("popagent_") and not name.startswith("popagent_testing"))


async def test_twenty_turns_at_once_with_three_delegations_each_lose_none_and_keep_nothing(
    chat: Chat, door: Door, model: ModelServer, pool: Pool, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("popagent_bus.live.REMEMBERED_AFTER_END_S", 0.1)
    folder = root / "default"
    await asked_at_once(door, model, folder, 0)
    model.reset()
    before = ours()

    stored = await asked_at_once(door, model, folder, SUPERVISORS)

    model.reset()
    activities = [part["data"] for each in stored for part in each["parts"] if part["type"] == "data-agentActivity"]
    assert Counter((each["agentId"], each["state"]) for each in activities) == dict.fromkeys(
        [(agent, "completed") for agent in SPECIALISTS], SUPERVISORS
    )
    threads = {each["threadId"] for each in activities}
    kept = await pool.fetch(
        "select array_agg(m.role order by m.seq) as roles, bool_and(m.metadata->>'threadId' = d.thread_id) as own"
        " from delegations d join messages m using (thread_id) where d.thread_id = any($1) group by d.thread_id",
        list(threads),
    )
    assert len(kept) == len(threads) == SUPERVISORS * len(SPECIALISTS)
    assert all(row["roles"] == ["user", "assistant"] and row["own"] for row in kept)
    await until(lambda: max((ours() - before).values(), default=0) <= FEW)
