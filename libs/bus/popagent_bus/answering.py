"""Commands and queries of one service: parsed, traced, handled in bounded numbers, answered once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import nats.errors
from faststream.nats import NatsMessage
from nats.aio.msg import Msg
from pydantic import BaseModel

from popagent_bus.connection import Connection
from popagent_bus.handlers import Deps, Handlers
from popagent_bus.replies import FAILURE_HEADER, known_subject, name_of, parse, to_failure
from popagent_bus.slots import Slots
from popagent_kit import json
from popagent_kit.errors import AppError, InternalError, NotFoundError, TooLargeError, UnavailableError
from popagent_proto.base import ANSWER_WITHIN_S, Query, Request, Wire
from popagent_telemetry import current_span, current_trace_id, extract, metrics, note_error, span

# A reply may go only where replies live: whoever asks names the subject, and it could be another's command.
INBOX: Final = "_INBOX_"
STOP_WITHIN_S: Final = 10.0

SECONDS: Final = metrics.histogram(
    "popagent_bus_request_seconds", "Time to answer a request, waiting for a slot included", ("subject",)
)
FAILURES: Final = metrics.counter("popagent_bus_request_failures_total", "Failure replies", ("subject", "code"))
IGNORED: Final = metrics.counter("popagent_bus_requests_ignored_total", "Requests without a place for the reply")
log = logging.getLogger(__name__)


async def as_it_is(message: NatsMessage) -> NatsMessage:
    """Decode nothing: FastStream would parse the JSON a second time, without a bound."""
    return message


class Answering:
    """Serves `popagent.<service>.cmd.>` and `.qry.>` as one of the queue group named after the service."""

    def __init__(self, connection: Connection, handlers: Handlers[Deps], deps: Deps, max_workers: int) -> None:
        self.connection = connection
        self._handlers: dict[str, tuple[type[Request[Any]], Callable[[Any, Any], Awaitable[Any]]]] = handlers.requests
        self._deps = deps
        self._max_workers = max_workers
        self._slots: list[Slots[tuple[Msg, float]]] = []
        self._subscribers: list[Any] = []

    async def start(self) -> None:
        """Subscribe; commands and queries have slots of their own, so that neither starves the other."""
        loop = asyncio.get_running_loop()
        service = self.connection.service
        for kind in ("cmd", "qry"):
            slots = Slots(self._max_workers, self._answer)
            self._slots.append(slots)
            subscriber = self.connection.broker.subscriber(
                f"popagent.{service}.{kind}.>", queue=service, no_reply=True, decoder=as_it_is, persistent=False
            )

            async def take(message: NatsMessage, slots: Slots[tuple[Msg, float]] = slots) -> None:
                await slots.take((message.raw_message, loop.time()))

            subscriber(take)
            await subscriber.start()
            self._subscribers.append(subscriber)

    async def stop(self) -> None:
        """Take no more, finish what was taken: others of the group get the rest, and nobody's request is lost."""
        await asyncio.gather(*(self._leave(subscriber) for subscriber in self._subscribers))
        self._subscribers.clear()
        for slots in self._slots:
            if not await slots.finish(STOP_WITHIN_S):
                log.warning("requests were cut off at stop")

    async def _leave(self, subscriber: Any) -> None:
        subscription: Any = subscriber.subscription
        if subscription is not None and not self.connection.client.is_closed:
            try:
                async with asyncio.timeout(STOP_WITHIN_S):
                    await self.connection.leave(subscription)
            except (nats.errors.Error, TimeoutError) as error:
                log.warning("could not leave the queue group cleanly", extra={"reason": repr(error)})
            subscriber.subscription = None  # else FastStream unsubscribes what is gone
        await subscriber.stop()

    async def _answer(self, item: tuple[Msg, float]) -> None:
        message, arrived = item
        if not message.reply.startswith(INBOX):
            IGNORED.inc()
            log.warning("request ignored: its reply would not go to an inbox", extra={"subject": message.subject})
            return
        known = self._handlers.get(known_subject(message.subject))
        label = name_of(message.subject) if known is not None else "unknown"
        parent = extract(message.headers)
        if parent is None and known is not None and issubclass(known[0], Query):
            await self._reply(message, *await self._outcome(message, known, arrived), label)
        else:
            with span(f"answer {label}", parent=parent, kind="server"):
                await self._reply(message, *await self._outcome(message, known, arrived), label)
        SECONDS.labels(label).observe(asyncio.get_running_loop().time() - arrived)

    async def _outcome(
        self,
        message: Msg,
        known: tuple[type[Request[Any]], Callable[[Any, Any], Awaitable[Any]]] | None,
        arrived: float,
    ) -> tuple[bytes, AppError | None]:
        """Return the reply's bytes, and the error when they are a Failure."""
        within_s = ANSWER_WITHIN_S if known is None else known[0].answer_within_s
        left = within_s - (asyncio.get_running_loop().time() - arrived)
        try:
            if known is None:
                log.warning("request unknown", extra={"subject": known_subject(message.subject)})
                raise NotFoundError(f"{self.connection.service} does not know this request. Is it of another version?")
            if left <= 0:
                raise UnavailableError(f"{self.connection.service} is overloaded", retry_after_s=1)
            message_type, handler = known
            async with asyncio.timeout(left) as limit:
                reply = await handler(self._deps, parse(message_type, message.data))
            return self._encode(message_type, reply), None
        except AppError as error:
            note_error(current_span(), error)
            return to_failure(error), error
        except TimeoutError as error:
            if limit.expired():
                gave_up = UnavailableError(
                    f"This took longer than {within_s:g} s and was given up. Try again in a moment."
                )
                log.error("request given up", extra={"subject": message.subject, "seconds": within_s})
                return to_failure(gave_up), gave_up
            return self._defect(message, error)
        except asyncio.CancelledError:
            stopping = UnavailableError(f"{self.connection.service} is stopping", retry_after_s=1)
            return to_failure(stopping), stopping
        except Exception as error:  # noqa: BLE001 (the edge: a defect is logged and answered, the service lives on)
            return self._defect(message, error)

    def _defect(self, message: Msg, error: Exception) -> tuple[bytes, AppError]:
        log.error("request failed", exc_info=error, extra={"subject": message.subject})
        note_error(current_span(), error)
        told = InternalError(f"Something broke on our side (trace {current_trace_id() or 'unknown'}).")
        return to_failure(told), told

    @staticmethod
    def _encode(message_type: type[Request[Any]], reply: object) -> bytes:
        expected = message_type.reply_type()
        if not isinstance(reply, expected):
            raise TypeError(f"{message_type.__name__} is answered by {expected.__name__}, not {type(reply).__name__}")
        if isinstance(reply, Wire):
            return reply.encode()
        assert isinstance(reply, BaseModel)
        return json.dumps(reply.model_dump(mode="json", by_alias=True))

    async def _reply(self, message: Msg, data: bytes, error: AppError | None, label: str) -> None:
        if error is None and len(data) > self.connection.max_payload:
            error = TooLargeError(f"The answer has {len(data)} bytes, more than a message may have")
            data = to_failure(error)
            log.error("answer too large", extra={"subject": message.subject, "bytes": len(data)})
        headers = None
        if error is not None:
            FAILURES.labels(label, error.code).inc()
            headers = {FAILURE_HEADER: str(error.http_status)}
        try:
            await self.connection.client.publish(message.reply, data, headers=headers)
        except nats.errors.Error as lost:
            log.warning("answer lost", extra={"subject": message.subject, "reason": repr(lost)})
