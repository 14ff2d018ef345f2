"""A company whose agents write to each other, for the tests of letters."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from libs.agent.tests.company import Company, company, specialist
from popagent_agent.communication import NAME
from popagent_models.profile import ModelProfile

BIG = ModelProfile(32_768, 128, 2_000, 120.0)
ASK = ("agent-scout", {"prompt": "Find it."})
WAIT = (NAME, {"operation": "wait"})
PEERS = (NAME, {"operation": "peers"})


def writes(to: str, message: str) -> tuple[str, dict[str, Any]]:
    return NAME, {"operation": "send", "to": to, "message": message}


def peers(kit: Any, *replies: Any, model: ModelProfile = BIG, **options: Any) -> Company:
    """A company whose agents are offered letters; the specialists are those that have a script."""
    names = [name for name in options if name in {"scout", "smith"}]
    agents = options.pop("agents", None) or [specialist(name, model=BIG) for name in names]
    made = company(kit, *replies, agents=agents, **options)
    made.turn.context = replace(made.turn.context, model=model)
    return made


def read_by(model: Any, number: int = -1) -> str:
    """All that a model read in one of its steps."""
    return "\n".join(str(message.get("content")) for message in model.requests[number].messages)


def never_ends() -> asyncio.Event:
    """Something for a model to wait for."""
    return asyncio.Event()
