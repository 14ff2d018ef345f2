"""From a status, an error in a stream, or a broken connection to a `ModelError`; the provider's words go to the log."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from popagent_kit.text import one_line
from popagent_models.errors import (
    ContextOverflowError,
    ModelConfigurationError,
    ModelError,
    ModelProviderError,
    ModelRateLimitedError,
    ModelRequestError,
    ModelTimeoutError,
)
from popagent_telemetry.redaction import redact

log = logging.getLogger(__name__)

LONGEST_RETRY_AFTER_S: Final = 24 * 3600.0
_OVERFLOW: Final = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:length|window|size)|prompt is too long|too many tokens"
    r"|maximum (?:prompt|input) length",
    re.I,
)
_RATE: Final = re.compile(r"rate.?limit|too many requests|quota|overloaded", re.I)


def error_for_status(
    status: int, detail: str, host: str, model: str, retry_after_s: float | None = None, *, level: int = logging.WARNING
) -> ModelError:
    """Return the error for an HTTP status; `detail` is the provider's text and goes to the log."""
    log.log(
        level,
        "the model server refused a request",
        extra={"status": status, "host": host, "model": model, "detail": one_line(redact(detail), 500)},
    )
    if status in {401, 403}:
        return ModelConfigurationError(
            f"The model server at {host} refuses the key. Check POPAGENT_MODEL_KEY, or the connection in the settings."
        )
    if status == 402:
        return ModelConfigurationError(f"The account at the model server {host} has no credit left.")
    if status == 404:
        return ModelRequestError(f"The model server at {host} does not know the model “{model}”.", field="model")
    if status in {408, 504}:
        return ModelTimeoutError(f"The model server at {host} reports that its model did not answer in time.")
    if status == 429:
        return ModelRateLimitedError(
            f"The model server at {host} takes no more requests at the moment.", retry_after_s=retry_after_s
        )
    if status == 413 or (400 <= status < 500 and _OVERFLOW.search(detail)):
        return ContextOverflowError(f"The conversation is longer than the model “{model}” can read.")
    if 300 <= status < 400:
        return ModelConfigurationError(
            f"The model server at {host} points to another address. Connect the final one instead."
        )
    if 400 <= status < 500:
        return ModelRequestError(f"The model server at {host} does not accept this request (status {status}).")
    return ModelProviderError(f"The model server at {host} failed (status {status}).", retry_after_s=retry_after_s)


def error_in_stream(payload: Mapping[str, Any], host: str, model: str) -> ModelError:
    """Return the error that an object inside a stream reports, by its code when it has one."""
    found = payload.get("error") or payload
    error: Mapping[str, Any] = found if isinstance(found, Mapping) else {"message": str(found)}
    detail = " ".join(str(error.get(key) or "") for key in ("code", "type", "message"))
    for name in ("status", "code", "http_status"):
        value = error.get(name)
        if isinstance(value, int | str) and re.fullmatch(r"[45]\d\d", str(value)):
            return error_for_status(int(value), detail, host, model)
    if _OVERFLOW.search(detail):
        return error_for_status(400, detail, host, model)
    if _RATE.search(detail):
        return error_for_status(429, detail, host, model)
    log.warning(
        "the model server reported an error inside its answer",
        extra={"host": host, "model": model, "detail": one_line(redact(detail), 500)},
    )
    return ModelProviderError(f"The model server at {host} broke off its answer with an error.")


def no_headers(host: str, seconds: float) -> ModelError:
    """Return the error for a server that took the request and stayed silent."""
    return ModelTimeoutError(f"The model server at {host} did not answer within {seconds:g} s.")


def fell_silent(host: str, seconds: float) -> ModelError:
    """Return the error for a stream without a sign of life."""
    return ModelTimeoutError(f"The model server at {host} fell silent: nothing came for {seconds:g} s.")


def unreachable(host: str) -> ModelError:
    """Return the error for a server that does not take connections."""
    return ModelProviderError(f"The model server at {host} cannot be reached. Is it running?")


def cut_off(host: str) -> ModelError:
    """Return the error for an answer that ended in the middle."""
    return ModelProviderError(f"The answer of the model server at {host} was cut off before its end.")


def no_answer(host: str) -> ModelError:
    """Return the error for a success without any content that we understand."""
    return ModelProviderError(f"The model server at {host} sent nothing that is an answer.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a server asks to wait, from `retry-after-ms` or `Retry-After` (seconds or a date)."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) * scale
        except ValueError:
            seconds = until_date(text)
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, LONGEST_RETRY_AFTER_S)
    return None


def until_date(text: str) -> float:
    """Return the seconds until an HTTP date, never negative; NaN when it is not one."""
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return math.nan
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
