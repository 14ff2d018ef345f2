"""What a model can bear: small local ones get few tools and short outputs, big ones are not held back."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final

EMBEDDED_MODEL: Final = "qwen2.5-coder-1.5b-instruct"
UNKNOWN_CONTEXT: Final = 32_768
# Left alone it recites the file that it was asked about, at six tokens a second. Names and code it still gives in full.
EMBEDDED_GUIDANCE: Final = (
    "Say it in your own words, in three short sentences at most. Never copy out what a file says."
)

# Context windows, in tokens, of models whose servers do not tell them; the first pattern that is found wins.
CONTEXT_WINDOWS: Final = tuple(
    (re.compile(pattern, re.I), tokens)
    for pattern, tokens in (
        (rf"^{re.escape(EMBEDDED_MODEL)}$", 8_192),
        (r"codex-spark", 128_000),
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-4o|gpt-4-turbo", 128_000),
        (r"gpt-5|codex", 400_000),
        (r"gpt-oss", 131_072),
        (r"(^|/)o[134](-|$)", 200_000),
        (r"claude", 200_000),
        (r"gemini-[23]", 1_048_576),
        (r"deepseek", 128_000),
        (r"kimi-k2", 262_144),
        (r"glm-4", 131_072),
        (r"qwen-?3-coder", 262_144),
        (r"qwen", 32_768),
        (r"llama-?3\.[123]|llama-?4", 131_072),
        (r"llama-?3", 8_192),
        (r"mistral|devstral|codestral", 131_072),
        (r"gemma-?3", 131_072),
    )
)


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How prompts and tool sets are shaped for a model: `context` and `tool_output_tokens` in tokens.

    `guidance` is told to the model beside the message of every turn: in the system text a small one forgets it.
    `reply_tokens` bounds what it writes in one step; None leaves that to its window.
    """

    context: int
    max_tools: int
    tool_output_tokens: int
    idle_timeout_s: float
    guidance: str = ""
    reply_tokens: int | None = None


@functools.lru_cache(maxsize=1_024)  # every run asks for the model of each of its agents
def known_context(model_id: str) -> int | None:
    """Return the context window in tokens by the model's name, None when the name says nothing."""
    for pattern, tokens in CONTEXT_WINDOWS:
        if pattern.search(model_id):
            return tokens
    return None


def profile_for(model_id: str, context: int | None = None) -> ModelProfile:
    """Return the profile of a model; `context` is the catalogue's figure and goes before the name's."""
    if model_id.lower() == EMBEDDED_MODEL:
        return ModelProfile(
            context=min(context or 8_192, 8_192),
            max_tools=4,
            tool_output_tokens=600,
            idle_timeout_s=300.0,  # it reads a prompt of 1,500 tokens in silence for 30 s on one thread
            guidance=EMBEDDED_GUIDANCE,
            reply_tokens=700,  # it writes 6 tokens a second, and where a task is beyond it, without an end
        )
    window = context or known_context(model_id) or UNKNOWN_CONTEXT
    if window <= 16_384:
        return ModelProfile(window, 8, max(256, window // 12), 300.0)
    return ModelProfile(window, 128, min(16_000, window // 16), 120.0)
