"""What a specialist is given, and what comes back of it: bounds of the run's settings, applied without I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from popagent_agent.mailbox import Mailbox
from popagent_agent.messages import UIMessage, steps_of, visible_text
from popagent_agent.normalise import normalised
from popagent_agent.prompt import Segment, Stability
from popagent_agent.run_context import AgentProfile, RunContext
from popagent_agent.tokens import beginning, cut_text, estimate_tokens, fits
from popagent_kit.ids import new_id
from popagent_models.errors import ModelConfigurationError
from popagent_models.profile import ModelProfile
from popagent_proto.chat.settings import AgentRuntimeView
from popagent_telemetry import redact

# Of a specialist's window, for the conversation that it was not part of.
CONVERSATION_SHARE: Final = 8
SHORTEST_MESSAGE_TOKENS: Final = 40
CONVERSATION: Final = (
    "What was said before, oldest first, so that you know what this is about. Your task stands below it."
)
ROLES: Final = frozenset({"user", "assistant"})
PERSON: Final = "Person"


@dataclass(frozen=True, slots=True)
class Said:
    """What a message says, without its tool calls."""

    role: str
    text: str


def context_slice(messages: Iterable[UIMessage], most: int) -> list[Said]:
    """Return the newest `most` messages that say something, up to the last one of the person."""
    said = [
        Said(message["role"], normalised(visible_text(message["parts"])).strip())
        for message in messages
        if message["role"] in ROLES
    ]
    tail = [each for each in said if each.text][-most:] if most else []
    while tail and tail[-1].role == "assistant":
        tail.pop()
    return tail


def conversation(said: Sequence[Said], supervisor: str, tokens: int) -> list[Segment]:
    """Return the messages as a text of about `tokens` at most, of which the oldest go first; nothing for nothing."""
    told: list[str] = []
    left = tokens
    for each in reversed(said):
        if left < SHORTEST_MESSAGE_TOKENS:
            break
        speaker = supervisor if each.role == "assistant" else PERSON
        text = f"{speaker}: {cut_text(each.text, max(SHORTEST_MESSAGE_TOKENS, min(left, tokens // 2)))}"
        left -= estimate_tokens(text)
        told.append(text)
    if not told:
        return []
    return [Segment("conversation", "\n\n".join([CONVERSATION, *reversed(told)]), Stability.TURN)]


def specialist_context(
    run: RunContext, agent: AgentProfile, instructions: str | None, mail: Mailbox | None = None
) -> RunContext:
    """Return the run's context for a specialist: its own rights, model, thread and mailbox; nobody to delegate to.

    Raises:
        ModelConfigurationError: No model was found for it when the run began.
    """
    route, model = agent.route, agent.model
    if route is None or model is None:
        raise ModelConfigurationError(f"No model was found for {agent.id} when this run began.")
    if instructions and instructions.strip():
        agent = replace(agent, instructions=f"{agent.instructions}\n\n{instructions.strip()}")
    workspace = run.workspace
    if workspace is not None:
        workspace = None if agent.workspace_access == "none" else replace(workspace, access=agent.workspace_access)
    return replace(
        run,
        agent=agent,
        route=route,
        model=model,
        workspace=workspace,
        policy=run.policy.of_specialist(agent.workspace_access),
        agents=(),
        thread_id=new_id(),
        resource_id=new_id(),
        mail=mail,
    )


def capped_steps(asked: int | None, settings: AgentRuntimeView) -> int:
    """Return how many steps a specialist gets: what was asked for, never more than its own ceiling."""
    return min(asked or settings.specialist_max_steps, settings.specialist_max_steps)


def last_text(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return what the last step that says something says; what was said on the way to it stays behind."""
    return next((text for step in reversed(steps_of(parts)) if (text := visible_text(step))), "")


def bounded_result(text: str, settings: AgentRuntimeView, reader: ModelProfile) -> str:
    """Return the result as the supervisor reads it: as long as the settings allow and `reader` is shown of an output.

    A credential is gone before it could be cut in two.
    """
    text = redact(text.strip())
    note = settings.delegation_truncation_text
    kept = text[: settings.delegation_result_characters]
    if text == kept and fits(kept, reader.tool_output_tokens):
        return text
    if not fits(f"{kept}\n\n{note}", reader.tool_output_tokens):
        kept = beginning(kept, reader.tool_output_tokens, f"\n\n{note}")
    return f"{kept.rstrip()}\n\n{note}"
