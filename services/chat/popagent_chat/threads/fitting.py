"""A message larger than a reply may be is shown shortened; what is stored stays whole."""

from __future__ import annotations

from typing import Any, Final

import orjson

# Texts are cut to half of this, then to half of that, until the message fits.
FIRST_CUT_CHARACTERS: Final = 256_000
LAST_CUT_CHARACTERS: Final = 250
# What names something is never cut.
NAMES: Final = frozenset({"id", "type", "state", "toolCallId", "toolName", "role"})


def fitted(message: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Return the UI message with its longest texts cut, each with a note, so that its JSON has at most `max_bytes`.

    Of a message with more parts than that allows, the newest ones are kept.
    """
    if len(orjson.dumps(message)) <= max_bytes:
        return message
    characters = FIRST_CUT_CHARACTERS
    shorter = message
    while characters >= LAST_CUT_CHARACTERS:
        shorter = {name: _cut(value, characters) for name, value in message.items()}
        if len(orjson.dumps(shorter)) <= max_bytes:
            return shorter
        characters //= 2
    while len(shorter["parts"]) > 1 and len(orjson.dumps(shorter)) > max_bytes:
        parts = shorter["parts"]
        shorter = {**shorter, "parts": parts[len(parts) // 2 :]}
    return shorter


def _cut(value: Any, characters: int) -> Any:
    if isinstance(value, str):
        if len(value) <= characters:
            return value
        return f"{value[:characters]}\n[cut here: {len(value) - characters:,} more characters are stored]"
    if isinstance(value, dict):
        return {name: item if name in NAMES else _cut(item, characters) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, characters) for item in value]
    return value
