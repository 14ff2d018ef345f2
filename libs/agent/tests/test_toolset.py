from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import Toolset, tool


class Hit(BaseModel):
    path: str
    line: int


@tool("find", access="read")
async def find(
    run: RunContext,
    what: Annotated[str, Field(description="A word.", max_length=10)],
    order: Literal["up", "down"] = "up",
    limit: int | None = None,
    tags: list[str] | None = None,
) -> list[Hit]:
    """Find something.

    Anything.
    """
    return [Hit(path=what, line=limit or 1)]


def test_a_signature_becomes_a_short_schema() -> None:
    assert find.schema() == {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Find something.\n\nAnything.",
            "parameters": {
                "type": "object",
                "properties": {
                    "what": {"type": "string", "maxLength": 10, "description": "A word."},
                    "order": {"type": "string", "enum": ["up", "down"], "default": "up"},
                    "limit": {"type": "integer"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["what"],
            },
        },
    }


def test_a_tool_without_arguments_has_an_empty_schema() -> None:
    @tool("now", access="read")
    async def tells(run: RunContext) -> str:
        """Tell."""
        return "now"

    assert tells.schema()["function"]["parameters"] == {"type": "object", "properties": {}}


async def test_arguments_are_taken_leniently_and_results_given_as_json(kit: Any) -> None:
    outcome = await Toolset([find]).call("find", '{"what": "x", "limit": "3", "tags": null}', kit.context())

    assert (outcome.text, outcome.error) == ('[{"path":"x","line":3}]', False)


async def test_no_arguments_at_all_are_an_empty_object(kit: Any) -> None:
    outcome = await Toolset([find]).call("find", "", kit.context())

    assert outcome.error
    assert "what: Field required" in outcome.text
    assert "It takes: what (required), order, limit, tags." in outcome.text
