"""What can go wrong with a model: the class is for the retry policy, the sentence is for a person.

No sentence carries a provider's own words: those may hold keys and internals, and go to the log, redacted.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from popagent_kit.errors import AppError, InvalidInputError

NOT_CONNECTED: Final = (
    "No model is connected. Connect one in the settings, or set POPAGENT_MODEL_URL to an OpenAI-compatible server."
)
ErrorClass = Literal["configuration", "validation", "timeout", "rate_limit", "provider"]


class ModelError(AppError):
    """The model failed. `started` tells whether a part of the answer had already been handed on."""

    code = "model_error"
    http_status = 502
    retryable = True
    error_class: ClassVar[ErrorClass] = "provider"

    def __init__(
        self,
        message: str = "",
        *,
        field: str | None = None,
        retry_after_s: float | None = None,
        extra: dict[str, Any] | None = None,
        started: bool = False,
    ) -> None:
        super().__init__(message, field=field, retry_after_s=retry_after_s, extra=extra)
        self.started = started


class ModelConfigurationError(ModelError):
    """No model is connected, or its key is wrong."""

    code = "model_configuration"
    http_status = 503
    retryable = False
    error_class = "configuration"


class ModelRequestError(ModelError):
    """The model server refuses this request, and will refuse it again."""

    code = "model_request"
    http_status = 422
    retryable = False
    error_class = "validation"


class ContextOverflowError(ModelRequestError):
    """The conversation is longer than this model can read."""

    code = "context_overflow"


class ModelTimeoutError(ModelError):
    """The model server did not answer in time."""

    code = "model_timeout"
    http_status = 504
    error_class = "timeout"


class ModelRateLimitedError(ModelError):
    """The model server has too much to do at the moment."""

    code = "model_rate_limited"
    http_status = 429
    error_class = "rate_limit"


class ModelProviderError(ModelError):
    """The model server failed."""

    code = "model_provider"


class UnknownModelError(InvalidInputError):
    """The model server does not offer this model."""

    code = "unknown_model"
