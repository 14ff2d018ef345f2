"""What a run asks its model, step by step: the prompt within the window, the tools, and how much may be answered."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from popagent_agent.messages import ChatMessage, steps_of
from popagent_agent.prompt import Prompt
from popagent_agent.run_context import RunContext
from popagent_agent.tokens import schema_tokens
from popagent_models.errors import ContextOverflowError
from popagent_models.request import ModelRequest, Origin

log = logging.getLogger(__name__)

# Tokens kept free for the answer in a small window; big models end by themselves.
SMALL_WINDOW: Final = 16_384
REPLY_SHARE: Final = 4
MOST_REPLY: Final = 8_192
# Of the window, after the server said that the prompt was longer than our estimate.
RETRY_SHARE: Final = 0.6


class Requests:
    """Composes the requests of one run; the same parts give the same request."""

    def __init__(
        self, context: RunContext, prompt: Prompt, schemas: list[dict[str, Any]], temperature: float | None
    ) -> None:
        model = context.model
        self.context = context
        self.prompt = prompt
        self.schemas = schemas
        self.temperature = temperature
        self.reply_tokens = model.reply_tokens or min(model.context // REPLY_SHARE, MOST_REPLY)
        self.budget = model.context - self.reply_tokens - schema_tokens(schemas)

    def tell(self, parts: Sequence[Mapping[str, Any]], letters: str) -> None:
        """Let every request from now on tell of letters, at the place that `parts` have come to."""
        self.prompt.letters.append((len(steps_of(parts)), letters))

    def step(self, parts: Sequence[Mapping[str, Any]], note: str = "", *, final: bool = False) -> ModelRequest:
        """Return the request of the step after `parts`; a final one may call nothing."""
        # The tools stay in the prompt of a final step: servers refuse calls in the history of undeclared tools.
        choice = "none" if final and self.schemas else "auto"
        return self._request(self.prompt.compose(parts, self.budget, note), self.schemas, choice)

    def plain(self, parts: Sequence[Mapping[str, Any]], note: str) -> ModelRequest:
        """Return a request without tools, in which what they found is told as text."""
        return self._request(self.prompt.compose_plain(parts, self.budget, note), [], "auto")

    def refuse_oversized(self) -> None:
        """Raise ContextOverflowError when no step can fit."""
        if self.prompt.fixed_tokens > self.budget:
            raise ContextOverflowError(
                f"Your message is too long for this model: about {self.prompt.fixed_tokens:,} tokens with the "
                f"instructions, and it can read {self.budget:,}. Shorten it, or choose a model with a larger window."
            )

    def shorten(self) -> None:
        """Make the next requests shorter: the server counts more tokens than we do."""
        log.warning("prompt too long for the model, shortened", extra={"budget_tokens": self.budget})
        self.budget = int(self.budget * RETRY_SHARE)

    def _request(self, messages: list[ChatMessage], tools: list[dict[str, Any]], tool_choice: str) -> ModelRequest:
        context = self.context
        return ModelRequest(
            model=context.route.model,
            messages=messages,
            tools=tools,
            tool_choice=tool_choice,
            max_tokens=self.reply_tokens if context.model.context <= SMALL_WINDOW else None,
            temperature=self.temperature,
            origin=Origin(
                turn_id=context.turn_id,
                agent_id=context.agent.id,
                requested_model=context.requested_model,
                source=context.route.source,
            ),
        )
