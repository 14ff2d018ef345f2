"""Reads from an error what ended an attempt: its class decides whether there is another one."""

from __future__ import annotations

from typing import Final

import asyncpg

from popagent_kit.errors import AppError
from popagent_kit.text import one_line
from popagent_models.errors import ErrorClass, ModelError
from popagent_proto.task_runner.tasks import ERROR_CHARACTERS, TaskErrorClass
from popagent_task_runner.tasks.executor import TaskFailedError
from popagent_telemetry import redact

OF_MODELS: Final[dict[ErrorClass, TaskErrorClass]] = {
    "configuration": "configuration",
    "validation": "validation",
    "timeout": "provider",
    "rate_limit": "rate-limit",
    "provider": "provider",
}
OF_CODES: Final[dict[str, TaskErrorClass]] = {
    "rate_limited": "rate-limit",
    "unavailable": "infrastructure",
    "no_answer": "infrastructure",
    "dependency": "infrastructure",
    "configuration": "configuration",
    "forbidden": "permission",
    "unauthorized": "permission",
    "read_only": "permission",
    "path_refused": "permission",
    "path_protected": "permission",
    "commands_forbidden": "permission",
    "invalid_input": "validation",
    "unknown_model": "validation",
    "not_found": "validation",
    "too_large": "validation",
    "hook_denied": "hook-denied",
}


def cause_of(error: BaseException) -> TaskErrorClass:
    """Return the class; `unknown`, which is never tried again by itself, for what is not known to pass."""
    if isinstance(error, TaskFailedError):
        return error.cause
    if isinstance(error, ModelError):
        return OF_MODELS[error.error_class]
    if isinstance(error, AppError):
        return OF_CODES.get(error.code, "unknown")
    if isinstance(error, asyncpg.PostgresConnectionError | asyncpg.InsufficientResourcesError):
        return "database"
    if isinstance(error, ConnectionError | TimeoutError):
        return "infrastructure"
    return "unknown"


def sentence_of(error: BaseException) -> str:
    """Return what a person reads, without secrets and bounded."""
    text = error.message if isinstance(error, AppError | TaskFailedError) else f"{type(error).__name__}: {error}"
    return storable(redact(one_line(text, ERROR_CHARACTERS)), ERROR_CHARACTERS)


def storable(text: str, limit: int) -> str:
    """Return the text as PostgreSQL and JSON can hold it, cut to `limit` characters."""
    return text[:limit].replace("\x00", "").encode("utf-8", "replace").decode()
