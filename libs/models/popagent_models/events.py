"""What a model's answer consists of, in the order it arrives; `Usage` and `Finished` close every complete answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length", "tool-calls", "content-filter"]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text to append to the answer; never empty, free of NUL and of lone surrogates."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Text to append to the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """The model calls a tool; `index` counts the calls of this answer from 0, `call_id` is unique among them."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """JSON text to append to the arguments of the call `index`; the whole need not be valid JSON."""

    index: int
    arguments_fragment: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of this call; `cached_tokens` are part of input, `reasoning_tokens` part of output.

    `estimated` means that the server counted nothing and a token was taken to be four characters.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a complete answer."""

    reason: FinishReason


ModelEvent = TextDelta | ReasoningDelta | ToolCallStart | ToolCallDelta | Usage | Finished
