"""Errors that cross a process: status, code and retry rule live on the class; the bus carries them as replies."""

from __future__ import annotations

from typing import Any, ClassVar


class AppError(Exception):
    """An answer to the caller, not a defect: `message` is read by a person, `code` by a program.

    `extra` is placed beside `error`, `code` and `field` in an HTTP body (a stored object on a conflict, for example).
    """

    code: ClassVar[str] = "internal"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    by_code: ClassVar[dict[str, type[AppError]]] = {}

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or type(self).__name__).strip().splitlines()[0]
        self.field = field
        self.retry_after_s = retry_after_s
        self.extra = extra or {}
        super().__init__(self.message)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        AppError.by_code.setdefault(cls.code, cls)


class InternalError(AppError):
    """Something broke on our side; the log holds the reason under this trace."""

    code = "internal"


class MalformedJsonError(AppError):
    """The body is not JSON."""

    code = "malformed_json"
    http_status = 400


class UnauthorizedError(AppError):
    """The key is missing or wrong. Send it in the header x-popagent-key."""

    code = "unauthorized"
    http_status = 401


class ForbiddenError(AppError):
    """This request is not allowed here."""

    code = "forbidden"
    http_status = 403


class NotFoundError(AppError):
    """There is nothing with this id."""

    code = "not_found"
    http_status = 404


class ConflictError(AppError):
    """The stored state does not allow this now."""

    code = "conflict"
    http_status = 409


class RevisionConflictError(ConflictError):
    """revision conflict"""

    code = "revision_conflict"


class KeyUsedError(ConflictError):
    """This Idempotency-Key was used for another command. Send this one with a new key."""

    code = "key_used"


class TooLargeError(AppError):
    """The body is larger than this route accepts."""

    code = "too_large"
    http_status = 413


class UnsupportedMediaTypeError(AppError):
    """Send JSON, with content-type: application/json."""

    code = "unsupported_media_type"
    http_status = 415


class InvalidInputError(AppError):
    """A field has a value that is not accepted."""

    code = "invalid_input"
    http_status = 422


class RateLimitedError(AppError):
    """Too many requests at once."""

    code = "rate_limited"
    http_status = 429
    retryable = True


class UnavailableError(AppError):
    """A part of popagent does not answer at the moment."""

    code = "unavailable"
    http_status = 503
    retryable = True


class NoAnswerError(AppError):
    """The service took the request and did not answer in time; whether it was carried out is not known."""

    code = "no_answer"
    http_status = 504


class ConfigurationError(AppError):
    """A setting is missing or wrong; the message names it and says what to set."""

    code = "configuration"


class DependencyError(AppError):
    """Something that this work needs (a model, another service) failed."""

    code = "dependency"
    http_status = 503
    retryable = True
