"""JSON as bytes; parsing is bounded in depth so that hostile nesting is an input error, not a crash."""

from __future__ import annotations

from typing import Any

import orjson

from popagent_kit.errors import MalformedJsonError


def dumps(value: Any) -> bytes:
    """Return compact JSON; raises TypeError on what JSON cannot hold (NaN becomes null only inside floats)."""
    return orjson.dumps(value)


def loads(data: bytes | str) -> Any:
    """Return the parsed value.

    Raises:
        MalformedJsonError: Not JSON, or nested deeper than the parser's limit (1,024).
    """
    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, RecursionError) as error:
        raise MalformedJsonError(f"The body is not valid JSON: {error}") from error
