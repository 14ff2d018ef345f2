"""Ids: uuidv7 text, so that they sort by creation; ids from clients are checked before they reach a subject."""

from __future__ import annotations

import os
import re
import time
import uuid
from typing import Annotated, Final

from pydantic import StringConstraints

# DESIGN: ids from clients. No dot, star, angle bracket or blank: an id can be a NATS token and a header value.
CLIENT_ID: Final = re.compile(r"\A[A-Za-z0-9_-]{1,64}\Z")

ID_PATTERN: Final = r"^[A-Za-z0-9_-]{1,64}$"

Id = Annotated[str, StringConstraints(pattern=ID_PATTERN, max_length=64)]


def new_id() -> str:
    """Return a uuidv7 as text (RFC 9562: 48 bits of Unix milliseconds, then random bits)."""
    milliseconds = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10), "big")
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80
    value |= 0x7 << 76 | ((random_bits >> 64) & 0xFFF) << 64
    value |= 0b10 << 62 | (random_bits & 0x3FFF_FFFF_FFFF_FFFF)
    return str(uuid.UUID(int=value))


def is_client_id(text: str) -> bool:
    """Tell whether `text` may be used as an id that came from outside."""
    return CLIENT_ID.match(text) is not None
