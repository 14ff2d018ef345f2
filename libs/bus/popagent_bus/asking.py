"""Asking another service: one request, one reply; a refusal is raised as the owner raised it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, TypeVar, cast

import nats.errors
from nats.aio.msg import Msg
from pydantic import BaseModel, ValidationError

from popagent_bus.connection import Connection, check_subject
from popagent_bus.replies import FAILURE_HEADER, from_failure, name_of
from popagent_kit import json
from popagent_kit.errors import (
    AppError,
    InternalError,
    InvalidInputError,
    MalformedJsonError,
    NoAnswerError,
    UnavailableError,
)
from popagent_kit.ids import is_client_id
from popagent_proto.base import ANSWER_WITHIN_S, Message, Query, Request
from popagent_telemetry import current_trace_id, inject, metrics, span

TIMEOUT_S: Final = 5.0
# The owner's word that it gave up arrives before the one who asked gives up.
LATER_THAN_OWNER_S: Final = 1.0
# How long "nobody listens" is taken for a restart; nothing was delivered, so asking again is safe.
PATIENCE_S: Final = 3.0
AGAIN_AFTER_S: Final = 0.05

REFUSED: Final = metrics.counter("popagent_bus_ask_failures_total", "Requests that failed", ("subject", "code"))
log = logging.getLogger(__name__)
R = TypeVar("R", bound=BaseModel)


def subject_of(message: Message) -> str:
    """Return where `message` goes.

    Raises:
        InvalidInputError: The id in it is not a plain token; nothing was sent.
    """
    if message.addressed_by is not None and not is_client_id(str(getattr(message, message.addressed_by))):
        raise InvalidInputError("an id is letters, digits, '_' and '-', at most 64", field=message.addressed_by)
    subject = message.to_subject()
    check_subject(subject)
    return subject


async def ask(
    connection: Connection, message: Request[R], *, timeout_s: float | None = None, patience_s: float = PATIENCE_S
) -> R:
    """Send a command or query to its owner and return the answer.

    Without `timeout_s` 5 s are waited, and for a class that declares a longer time, a second more than that.

    Raises:
        AppError: As the owner raised it; TooLargeError also when the question itself is more than a message may have.
        UnavailableError: Nobody took it within `patience_s`; nothing was delivered.
        NoAnswerError: It was taken and not answered within `timeout_s`; repeat only what carries an id of its own.
    """
    subject = subject_of(message)
    payload = message.encode()
    connection.check_size(payload)
    label = name_of(subject)
    if timeout_s is None:
        long = message.answer_within_s > ANSWER_WITHIN_S
        timeout_s = message.answer_within_s + LATER_THAN_OWNER_S if long else TIMEOUT_S
    try:
        if isinstance(message, Query) and current_trace_id() is None:  # a read that belongs to no work makes no trace
            reply = await _request(connection, subject, payload, None, timeout_s=timeout_s, patience_s=patience_s)
        else:
            with span(f"ask {label}", kind="client"):
                headers: dict[str, str] = {}
                inject(headers)
                reply = await _request(
                    connection, subject, payload, headers, timeout_s=timeout_s, patience_s=patience_s
                )
        return cast("R", _read(message, reply))
    except AppError as error:
        REFUSED.labels(label, error.code).inc()
        raise


def _read(message: Request[Any], reply: Msg) -> BaseModel:
    if (status := (reply.headers or {}).get(FAILURE_HEADER)) is not None:
        raise from_failure(reply.data, status)
    try:
        return message.reply_type().model_validate(json.loads(reply.data))
    except (MalformedJsonError, ValidationError) as error:
        log.error("answer of another shape", exc_info=error, extra={"subject": message.subject})
        raise InternalError("A part of popagent answered in a way that the others do not know.") from error


async def _request(
    connection: Connection,
    subject: str,
    payload: bytes,
    headers: dict[str, str] | None,
    *,
    timeout_s: float,
    patience_s: float,
) -> Msg:
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + patience_s
    owner = subject.split(".")[1]
    while True:
        try:
            if connection.connected:  # else the message would wait in the buffer and arrive after the caller gave up
                return await connection.client.request(subject, payload, timeout=timeout_s, headers=headers)
            reason = "NATS is not connected"
        except nats.errors.NoRespondersError:
            reason = f"{owner} does not run or is starting"
        except nats.errors.TimeoutError as error:
            raise NoAnswerError(f"{owner} did not answer within {timeout_s:g} s") from error
        except (nats.errors.ConnectionClosedError, nats.errors.ConnectionDrainingError) as error:
            raise UnavailableError("this process is stopping", retry_after_s=1) from error
        except nats.errors.OutboundBufferLimitError:
            reason = "NATS is not connected"
        if loop.time() + AGAIN_AFTER_S > give_up_at:
            raise UnavailableError(f"{owner} cannot be reached: {reason}", retry_after_s=1)
        await asyncio.sleep(AGAIN_AFTER_S)
