"""Two tools for the loop's tests, and what came out of them."""

from __future__ import annotations

from collections.abc import Callable

from popagent_agent.loop import TurnResult
from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool

AnswerOf = Callable[[TurnResult], str]


@tool("look", access="read")
async def look(run: RunContext, at: str, times: int = 1) -> str:
    """Look at something."""
    return f"saw {at} " * times


@tool("change", access="write")
async def change(run: RunContext, at: str) -> str:
    """Change something."""
    return f"changed {at}"


def outputs(result: TurnResult) -> list[str]:
    return [
        part.get("output") or f"error: {part['errorText']}" for part in result.parts if part["type"].startswith("tool-")
    ]
