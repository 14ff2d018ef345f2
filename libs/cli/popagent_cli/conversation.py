"""Asking in one session and showing the answer."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Any

from popagent_cli.client import Client
from popagent_cli.errors import CliError, RefusedError
from popagent_cli.following import Outcome, Sink, Turn
from popagent_cli.interrupts import StopOnInterrupt
from popagent_cli.printing import duration
from popagent_cli.rendering import Rendering
from popagent_cli.safe_text import one_safe_line
from popagent_cli.screen import Screen
from popagent_kit.ids import new_id
from popagent_kit.settings import command


@dataclass
class Conversation:
    """One session; it comes into being with its first question."""

    client: Client
    session: str
    workspace_id: str | None = None
    model: str | None = None

    def ask(self, text: str, screen: Screen, sink: Sink) -> tuple[Outcome, bool]:
        """Return how the turn ended, and whether Ctrl-C stopped it.

        Raises:
            CliError: The turn was not started, or the connection did not come back.
            KeyboardInterrupt: Ctrl-C twice.
        """
        message = {"id": new_id(), "role": "user", "parts": [{"type": "text", "text": text}]}
        body: dict[str, Any] = {"id": self.session, "message": message}
        if self.model:
            body["model"] = self.model
        if self.workspace_id:
            body["workspaceId"] = self.workspace_id
        with StopOnInterrupt(self.client, self.session, screen) as interrupt:
            try:
                outcome = Turn(self.client, self.session, sink, screen).ask(body, new_id())
            except RefusedError as error:
                if error.code == "turn_running":
                    raise CliError(
                        "An answer is being written in this session already. "
                        f"Watch it: {command(f'watch {self.session}')} · stop it: {command(f'stop {self.session}')}"
                    ) from error
                raise
            finally:
                screen.waiting("")
        return outcome, interrupt.pressed

    def converse(self, text: str, *, reasoning: bool) -> tuple[Outcome, bool]:
        """Ask, show the answer as it grows, and what there is to say about its end."""
        began_at = time.monotonic()
        with Screen() as screen:
            screen.waiting("sending")
            outcome, stopped = self.ask(text, screen, Rendering(screen, reasoning=reasoning))
            for line in remarks(outcome, time.monotonic() - began_at, sys.stderr.isatty()):
                screen.note(line)
        return outcome, stopped


def remarks(outcome: Outcome, seconds: float, wants_figures: bool) -> list[str]:
    """Return what a reader should know about the end, beside the answer."""
    metadata = outcome.message.get("metadata") or {}
    lines = []
    if outcome.ending["type"] == "abort":
        lines.append("stopped; what was written so far is kept")
    if outcome.ending.get("finishReason") == "length":
        lines.append("the model's limit for one answer cut it here")
    if metadata.get("budgetExhausted"):
        lines.append("all steps of a turn were used (supervisorMaxSteps); ask to go on")
    usage = metadata.get("usage")
    if wants_figures and isinstance(usage, dict):
        figures = [one_safe_line(str(metadata.get("model", "")), 60), duration(seconds * 1_000)]
        if metadata.get("steps", 1) > 1:
            figures.insert(1, f"{metadata['steps']} steps")
        if usage.get("inputTokens"):
            figures.append(f"{usage['inputTokens']:,} tokens read, {usage.get('outputTokens', 0):,} written")
        lines.append(" · ".join(filter(None, figures)))
    return lines


def says_it_itself(outcome: Outcome) -> bool:
    """Tell whether the text of a failed answer ends with the reason of its failure."""
    texts = [part["text"] for part in outcome.message["parts"] if part["type"] == "text"]
    return bool(texts) and outcome.error is not None and str(texts[-1]).strip().endswith(outcome.error.strip())
