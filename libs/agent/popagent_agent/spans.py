"""The spans of a run; the names of the generative-AI conventions stand here and nowhere else in the loop."""

from __future__ import annotations

from contextlib import AbstractContextManager

from opentelemetry.trace import Span

from popagent_agent.run_context import RunContext
from popagent_models.events import Usage
from popagent_telemetry import span


def run_span(run: RunContext, max_steps: int) -> AbstractContextManager[Span]:
    """Cover one run of an agent."""
    named: dict[str, str | int] = {"gen_ai.operation.name": "invoke_agent", "popagent.max_steps": max_steps}
    return span("agent.run", {**named, **run.attributes()})


def step_span(number: int, *, final: bool) -> AbstractContextManager[Span]:
    """Cover one model call and its tool calls."""
    return span("agent.step", {"popagent.step": number, "popagent.step.final": final})


def tool_span(name: str, call_id: str, access: str) -> AbstractContextManager[Span]:
    """Cover one tool call; arguments and results are content, which spans do not carry."""
    return span(
        f"execute_tool {name}",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call_id,
            "popagent.tool.access": access,
        },
    )


def note_tool(current: Span, *, error: bool, characters: int) -> None:
    """Write the outcome of a call into its span."""
    current.set_attribute("popagent.tool.output.characters", characters)
    if error:
        current.set_attribute("error.type", "tool_error")


def note_run(current: Span, usage: Usage, finish_reason: str, steps: int, error_class: str | None) -> None:
    """Write what the run came to into its span."""
    current.set_attribute("gen_ai.usage.input_tokens", usage.input_tokens)
    current.set_attribute("gen_ai.usage.output_tokens", usage.output_tokens)
    current.set_attribute("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens)
    current.set_attribute("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens)
    current.set_attribute("gen_ai.response.finish_reasons", [finish_reason])
    current.set_attribute("popagent.steps", steps)
    if error_class is not None:
        current.set_attribute("error.type", error_class)
