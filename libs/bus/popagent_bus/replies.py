"""Errors as replies: an `AppError` becomes a `Failure` and is raised as the same class at the caller."""

from __future__ import annotations

import logging
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from popagent_kit import json
from popagent_kit.errors import AppError, InternalError, InvalidInputError, MalformedJsonError
from popagent_kit.invalid import explained
from popagent_kit.text import excerpt
from popagent_proto.base import Failure, FailureBody

# The header of a Failure reply; its value is the HTTP status, for a code the caller does not know.
FAILURE_HEADER: Final = "Popagent-Failure"

log = logging.getLogger(__name__)
M = TypeVar("M", bound=BaseModel)


class RemoteError(AppError):
    """An error of another service whose class this process does not know."""

    def __init__(self, body: FailureBody, http_status: int) -> None:
        super().__init__(body.message, field=body.field, retry_after_s=body.retry_after_s, extra=body.extra)
        # This one class stands for many codes.
        self.code = body.code  # type: ignore[misc]
        self.http_status = http_status  # type: ignore[misc]
        self.retryable = http_status in {429, 503}  # type: ignore[misc]


def to_failure(error: AppError) -> bytes:
    """Return the reply's bytes."""
    body = FailureBody(
        code=error.code,
        message=excerpt(error.message, 4_000),
        field=error.field,
        retry_after_s=error.retry_after_s,
        extra=error.extra,
    )
    return Failure(failure=body).encode()


def from_failure(data: bytes, status: str) -> AppError:
    """Return the error a Failure reply tells of."""
    try:
        body = Failure.decode(data).failure
    except (MalformedJsonError, ValidationError) as error:
        log.error("failure of another shape", exc_info=error)
        return InternalError("A part of popagent refused this in a way that the others do not know.")
    known = AppError.by_code.get(body.code)
    if known is None or known is AppError:
        return RemoteError(body, int(status) if status.isdigit() else 500)
    return known(body.message, field=body.field, retry_after_s=body.retry_after_s, extra=body.extra)


def parse(message: type[M], data: bytes) -> M:
    """Return the message.

    Raises:
        MalformedJsonError: Not JSON.
        InvalidInputError: Another shape; `field` names the first wrong one as it is spelled on the wire.
    """
    try:
        return message.model_validate(json.loads(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field, sentence = explained(first, message, whole="the message")
        raise InvalidInputError(sentence, field=field) from error


def name_of(subject: str) -> str:
    """Return `owner.kind.slice-verb`: short, and the same for every id."""
    return ".".join(subject.split(".")[1:4])


def known_subject(subject: str) -> str:
    """Return the subject without the id that an addressed message ends in."""
    return ".".join(subject.split(".")[:5])
