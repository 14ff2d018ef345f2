"""Who is asked before the loop does something, and told after; the owner of the run says who that is."""

from __future__ import annotations

from typing import Protocol

from popagent_agent.ports import ToolCall


class Hooks(Protocol):
    """Whatever a hook does, these return; a refusal is a sentence for the model and for the person."""

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        """Return why the agent must not make the call, None when it may; a refusal holds for the whole run."""

    async def after_tool(self, agent_id: str, call: ToolCall, text: str, *, error: bool) -> None:
        """Tell what a call gave that was not refused before."""

    async def before_end(self, text: str) -> str | None:
        """Return why the answer `text` must not be the last word, None when it may."""


class NoHooks:
    """The hooks of a run that has none."""

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        """Let every call be made."""
        del agent_id, call
        return None

    async def after_tool(self, agent_id: str, call: ToolCall, text: str, *, error: bool) -> None:
        """Tell nobody."""

    async def before_end(self, text: str) -> str | None:
        """Let every answer be the last word."""
        del text
        return None
