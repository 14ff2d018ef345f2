"""Logging set-up of a process: one line a record, JSON for machines or plain for a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Final

from popagent_kit import json
from popagent_kit.clock import now, wire_time

STANDARD_FIELDS: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    """Return what the caller passed as `extra=`."""
    return {key: value for key, value in record.__dict__.items() if key not in STANDARD_FIELDS}


class LineFormatter(logging.Formatter):
    """Format a record as one line of JSON, or as `LEVEL logger: message key=value` when `plain`."""

    def __init__(self, *, plain: bool, redact: Callable[[str], str]) -> None:
        super().__init__()
        self.plain = plain
        self.redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; every text in it went through `redact`."""
        message = record.getMessage()
        extra = fields_of(record)
        if record.exc_info:
            extra["exception"] = self.formatException(record.exc_info)
        if self.plain:
            pairs = "".join(f" {key}={value}" for key, value in extra.items() if key != "exception")
            trace = f"\n{extra['exception']}" if "exception" in extra else ""
            return self.redact(f"{record.levelname} {record.name}: {message}{pairs}{trace}")
        line = {"at": wire_time(now()), "level": record.levelname.lower(), "logger": record.name, "message": message}
        return self.redact(json.dumps({**line, **{k: str(v) for k, v in extra.items()}}).decode())


def set_up(*, level: str = "INFO", plain: bool, redact: Callable[[str], str] = str) -> None:
    """Send every log record of this process to standard error through `redact`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(plain=plain, redact=redact))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("faststream", "httpx", "httpx2", "httpcore", "uvicorn.access", "uvicorn.error", "nats"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
