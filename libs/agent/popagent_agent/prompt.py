"""The prompt: typed segments from stable to volatile, the history that fits, this turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, Literal

from popagent_agent.messages import (
    NO_ANSWER,
    ChatMessage,
    UIMessage,
    assistant_messages,
    call_arguments,
    call_result,
    is_tool_part,
    reminder,
    steps_of,
    tool_name,
    user_message,
)
from popagent_agent.run_context import RunContext
from popagent_agent.skills import announcement
from popagent_agent.tokens import cut_text, message_tokens

SegmentKind = Literal[
    "instructions",
    "model",
    "conversation",
    "overlay",
    "skills",
    "workspace",
    "repository",
    "memory",
    "recall",
    "mailbox",
    "clock",
]
# A model with a smaller window reads so slowly, or holds so little, that it asks when it needs to know.
FEWEST_FOR_BRIEF: Final = 16_000
# What is left of a tool's output when the turn itself grows past the window.
SHRUNK_TOKENS: Final = 60


class Stability(IntEnum):
    """How rarely a text changes; a prompt is cached up to its first change."""

    AGENT = 0
    WORKSPACE = 1
    SESSION = 2
    TURN = 3


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of the system text; those of stability TURN stand beside the person's message instead."""

    kind: SegmentKind
    text: str
    stability: Stability


def base_segments(run: RunContext) -> list[Segment]:
    """Return what every run begins with: who the agent is, its skills, where it works, what its model must be told."""
    segments = [Segment("instructions", run.agent.instructions, Stability.AGENT)]
    if run.agent.skills:
        told = announcement(run.agent.skills, run.model.context)
        segments.append(Segment("skills", told, Stability.AGENT))
    if run.workspace is not None and run.workspace.access != "none":
        rights = "You may read and change its files." if run.workspace.access == "read-write" else "You may read it."
        text = f"Workspace: {run.workspace.name}. {rights} Paths are relative to it; '.' is its top folder."
        segments.append(Segment("workspace", text, Stability.WORKSPACE))
        if run.workspace.brief is not None and run.model.context >= FEWEST_FOR_BRIEF:
            segments.append(Segment("repository", run.workspace.brief.text, Stability.WORKSPACE))
    if run.model.guidance:
        segments.append(Segment("model", run.model.guidance, Stability.TURN))
    return segments


def system_text(segments: Iterable[Segment]) -> str:
    """Return the stable segments as one text, the most stable first."""
    lasting = [segment for segment in segments if segment.stability < Stability.TURN and segment.text.strip()]
    return "\n\n".join(segment.text.strip() for segment in sorted(lasting, key=lambda segment: segment.stability))


def turn_text(segments: Iterable[Segment]) -> str:
    """Return the segments that hold for this turn alone."""
    return "\n\n".join(
        segment.text.strip() for segment in segments if segment.stability == Stability.TURN and segment.text.strip()
    )


class Prompt:
    """Composes the messages of each model call of one turn.

    `history` are the earlier messages of the thread, oldest first; `message` is what the person says now. `letters` are
    told before the step of this turn that is the n-th of `steps_of`.
    """

    def __init__(
        self, segments: Sequence[Segment], history: Sequence[UIMessage], message: UIMessage, output_tokens: int
    ) -> None:
        self.output_tokens = output_tokens
        system = system_text(segments)
        self.system: list[ChatMessage] = [{"role": "system", "content": system}] if system else []
        self.turns = _turns(history, output_tokens)
        self.input = user_message(message, turn_text(segments))
        self.fixed_tokens = sum(map(message_tokens, [*self.system, self.input]))
        self.letters: list[tuple[int, str]] = []

    def compose(self, parts: Iterable[Mapping[str, Any]], budget: int, note: str = "") -> list[ChatMessage]:
        """Return the messages for the next step after the `parts` of this turn, within about `budget` tokens.

        Whole turns are dropped, the oldest first; then the outputs of this turn are shortened, and its letters, the
        oldest first. The system text and the person's message are always whole. `note` stands last.
        """
        now = self._now(parts)
        now = [*now, reminder(note)] if note else without_trailing_assistant(now)
        left = budget - self.fixed_tokens - sum(map(message_tokens, now))
        if left < 0:
            self._shrink(now, -left)
        return [*self.system, *_newest(self.turns, left), self.input, *now]

    def _now(self, parts: Iterable[Mapping[str, Any]]) -> list[ChatMessage]:
        """Return this turn so far; letters stand where they were read."""
        if not self.letters:
            return assistant_messages(parts, self.output_tokens)
        steps = steps_of(parts)
        told: list[ChatMessage] = []
        for number, step in enumerate(steps, start=1):
            told += [reminder(text) for at, text in self.letters if at == number]
            told += assistant_messages(step, self.output_tokens)
        return told + [reminder(text) for at, text in self.letters if at > len(steps)]

    def _shrink(self, messages: list[ChatMessage], excess: int) -> None:
        """Shorten outputs and letters, the oldest first, until about `excess` tokens are gone."""
        letters: dict[str, str] = {reminder(text)["content"]: text for _, text in self.letters}
        for message in messages:
            if excess <= 0:
                return
            letter = letters.get(message["content"])
            if message["role"] != "tool" and letter is None:
                continue
            before = message_tokens(message)
            short = cut_text(letter or message["content"], SHRUNK_TOKENS)
            message["content"] = short if letter is None else reminder(short)["content"]
            excess -= before - message_tokens(message)

    def compose_plain(self, parts: Sequence[Mapping[str, Any]], budget: int, note: str) -> list[ChatMessage]:
        """Return the messages for a call without tools: what tools found is told as text, for every server to take."""
        calls = [part for part in parts if is_tool_part(part)]
        known = len(calls) + len(self.letters)
        room = max(SHRUNK_TOKENS, (budget - self.fixed_tokens) // max(1, known) - 40)
        found = [
            f"{tool_name(part)} {call_arguments(part)}\n{cut_text(call_result(part), min(room, self.output_tokens))}"
            for part in calls
        ]
        found += [cut_text(text, min(room, self.output_tokens)) for _, text in self.letters]
        text = "What you found out so far:\n\n" + "\n\n".join(found) + f"\n\n{note}" if found else note
        last = reminder(text)
        left = budget - self.fixed_tokens - message_tokens(last)
        return [*self.system, *_newest(self.turns, left), self.input, last]


def without_trailing_assistant(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Drop assistant messages at the end that wait for nothing: some models refuse a prompt that ends on one."""
    end = len(messages)
    while end and messages[end - 1]["role"] == "assistant":
        end -= 1
    return messages[:end]


def _turns(history: Sequence[UIMessage], output_tokens: int) -> list[list[ChatMessage]]:
    """Return the history as turns: a user message and everything up to the next one; each ends with an answer.

    An answer before the first question is left out: many templates refuse a conversation that begins with one.
    """
    turns: list[list[ChatMessage]] = []
    for message in history:
        if message["role"] == "user":
            turns.append([user_message(message)])
        elif message["role"] == "assistant" and turns:
            turns[-1] += assistant_messages(message["parts"], output_tokens)
    for turn in turns:
        if turn and turn[-1]["role"] != "assistant":
            turn.append({"role": "assistant", "content": NO_ANSWER})
    return turns


def _newest(turns: list[list[ChatMessage]], room: int) -> list[ChatMessage]:
    kept: list[list[ChatMessage]] = []
    for turn in reversed(turns):
        room -= sum(map(message_tokens, turn))
        if room < 0:
            break
        kept.append(turn)
    return [message for turn in reversed(kept) for message in turn]
