"""Logging set-up of a process: one line a record, JSON for machines or plain for a terminal."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final

from popagent_kit import json
from popagent_kit.clock import now, wire_time

log = logging.getLogger(__name__)

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
    """Send every log record of this process to standard error through `redact`, and what ends it or a thread of it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(plain=plain, redact=redact))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("faststream", "httpx", "httpx2", "httpcore", "uvicorn.access", "uvicorn.error", "nats"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    sys.excepthook = _log_the_end
    threading.excepthook = _log_the_end_of_a_thread


def _log_the_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Write down what nobody caught; Python itself would print it unredacted."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        log.critical("the process ends by a defect of ours", exc_info=(kind, error, trace))


def _log_the_end_of_a_thread(ended: threading.ExceptHookArgs) -> None:
    error = ended.exc_value or ended.exc_type()
    log.critical("a thread ended by a defect of ours", exc_info=(ended.exc_type, error, ended.exc_traceback))
