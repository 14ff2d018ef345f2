"""What a stored attribute may be: bounded in depth, width and length, without NUL, redacted once more."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from popagent_kit import json
from popagent_kit.text import excerpt
from popagent_telemetry import is_secret_name, redact, redact_value

DEEPEST: Final = 5
WIDEST: Final = 64
LONGEST_KEY: Final = 128
LONGEST_TEXT: Final = 8_192
# Redaction sees more than is kept, so that a cut never leaves the first half of a secret unrecognised.
LONGEST_REDACTED: Final = 65_536
LARGEST_BYTES: Final = 32_768
SHORT_TEXT: Final = 256
TRUNCATED: Final = "popagent.truncated"
REPLACEMENT: Final = "\ufffd"


def plain(text: str, limit: int) -> str:
    """Return `text` redacted, without NUL (PostgreSQL cannot hold it), at most `limit` characters."""
    return excerpt(redact(text[:LONGEST_REDACTED].replace("\x00", REPLACEMENT)), limit) if text else ""


def plain_value(value: Any) -> Any:
    """Return a JSON value redacted and bounded; what lies deeper or further out than the limits becomes `…`."""
    return _shortened(redact_value(_pruned(value, 0)), LONGEST_TEXT)


def plain_attributes(value: Any, limit_bytes: int = LARGEST_BYTES) -> tuple[dict[str, Any], bytes]:
    """Return attributes and their JSON, at most `limit_bytes` long; anything but an object gives none."""
    if not isinstance(value, Mapping):
        return {}, b"{}"
    # The encoder refuses nesting that the parser allows: nothing is encoded before it is pruned or known to be flat.
    attributes = dict(value) if _harmless(value) else plain_value(value)
    encoded = json.dumps(attributes)
    if len(encoded) <= limit_bytes:
        return attributes, encoded
    attributes = _within(_shortened(attributes, SHORT_TEXT), limit_bytes)
    return attributes, json.dumps(attributes)


def _harmless(value: Mapping[str, Any]) -> bool:
    """Tell by one look at all texts together that nothing needs redaction or bounds; most spans are so."""
    if len(value) > WIDEST:
        return False
    texts: list[str] = []
    for key, item in value.items():
        if not _is_harmless_key(key):
            return False
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, list):
            if len(item) > WIDEST or any(isinstance(part, (dict, list)) for part in item):
                return False
            texts += (part for part in item if isinstance(part, str))
        elif isinstance(item, dict):
            return False
    text = "\n".join(texts)
    return len(text) <= LONGEST_TEXT and "\x00" not in text and redact(text) == text


@lru_cache(4_096)
def _is_harmless_key(key: str) -> bool:
    return len(key) <= LONGEST_KEY and "\x00" not in key and not is_secret_name(key) and redact(key) == key


def _within(attributes: Mapping[str, Any], limit_bytes: int) -> dict[str, Any]:
    """Keep the first attributes that fit, and say that there were more."""
    kept: dict[str, Any] = {TRUNCATED: True}
    size = len(json.dumps(kept))
    for key, item in attributes.items():
        size += len(json.dumps(key)) + len(json.dumps(item)) + 2
        if size <= limit_bytes:
            kept[key] = item
        else:
            break
    return kept


def _pruned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value[:LONGEST_REDACTED].replace("\x00", REPLACEMENT)
    if isinstance(value, (Mapping, list)) and depth >= DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())[:WIDEST]
        return {_pruned(key, depth)[:LONGEST_KEY]: _pruned(item, depth + 1) for key, item in items}
    if isinstance(value, list):
        return [_pruned(item, depth + 1) for item in value[:WIDEST]]
    return value


def _shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return excerpt(value, limit)
    if isinstance(value, dict):
        return {key: _shortened(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_shortened(item, limit) for item in value]
    return value
