"""Events and other stored messages: delivered until handled, five times at most, then kept in the dlq."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final

import nats.errors
import nats.js.errors
from faststream.middlewares import AckPolicy
from faststream.nats import JStream, NatsMessage, PullSub
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from popagent_bus.answering import STOP_WITHIN_S, as_it_is
from popagent_bus.connection import Connection
from popagent_bus.handlers import Deps, Handlers, RawMessage
from popagent_bus.replies import known_subject, parse
from popagent_bus.slots import Slots
from popagent_kit import tasks
from popagent_kit.errors import AppError, InvalidInputError, MalformedJsonError, TooLargeError, UnavailableError
from popagent_kit.text import one_line
from popagent_proto import matrix
from popagent_telemetry import metrics, redact, remote_context, span

# Seconds before the second, third, fourth and fifth delivery.
BACKOFF_S: Final = (1.0, 5.0, 30.0, 120.0)
WATCH_S: Final = 5.0
# After a fetch that could not be asked; FastStream would repeat it at once and for ever.
FETCH_AGAIN_S: Final = 0.2
# Who takes messages as they are gets those that come within a moment together: one request to NATS, and one
# transaction, for many.
TOGETHER: Final = 64
TOGETHER_S: Final = 0.1
# What the dlq keeps of a message that leaves no room for the reason.
CUT_BYTES: Final = 1024 * 1024

HANDLED: Final = metrics.counter("popagent_bus_events_total", "Stored messages by outcome", ("consumer", "outcome"))
PENDING: Final = metrics.gauge("popagent_bus_consumer_pending", "Messages not yet delivered", ("consumer",))
UNACKED: Final = metrics.gauge("popagent_bus_consumer_unacked", "Messages delivered and not yet done", ("consumer",))
REDELIVERED: Final = metrics.gauge("popagent_bus_consumer_redelivered", "Of these, not the first time", ("consumer",))
Handle = Callable[[RawMessage], Awaitable[None]]
log = logging.getLogger(__name__)


class PoisonError(Exception):
    """The message can never be handled; the text says why."""


class PatientSubscription:
    """A pull subscription whose failed fetches look like empty ones, after a pause."""

    def __init__(self, inner: JetStreamContext.PullSubscription) -> None:
        self.inner = inner

    async def fetch(self, batch: int = 1, timeout: float | None = 5) -> list[Msg]:
        """Return messages; TimeoutError when there were none. Of a batch the first one is waited for, and a moment."""
        messages = await self._fetch(1, timeout)
        if batch > 1:
            with suppress(nats.errors.TimeoutError):
                messages += await self._fetch(batch - 1, TOGETHER_S)
        return messages

    async def _fetch(self, batch: int, timeout: float | None) -> list[Msg]:
        try:
            return await self.inner.fetch(batch=batch, timeout=timeout)
        except nats.errors.TimeoutError:
            raise
        except (nats.errors.Error, TimeoutError) as error:
            log.debug("fetch failed", extra={"reason": repr(error)})
            await asyncio.sleep(FETCH_AGAIN_S)
            raise nats.errors.TimeoutError from error

    async def unsubscribe(self) -> None:
        """End it, also when the connection has ended it already."""
        try:
            await self.inner.unsubscribe()
        except nats.errors.Error as error:
            log.debug("subscription was over", extra={"reason": repr(error)})


class Durable:
    """One durable consumer: bound when it exists, bound again when it was made anew."""

    def __init__(
        self,
        connection: Connection,
        row: matrix.ConsumerRow,
        handle: Handle,
        workers: int,
        backoff_s: tuple[float, ...],
        *,
        traced: bool = True,
        together: int = 1,
    ) -> None:
        self.connection = connection
        self.row = row
        self.handle = handle
        self.traced = traced
        self.together = together
        self.backoff_s = backoff_s
        self.slots: Slots[Msg] = Slots(min(workers, row.max_ack_pending), self._deliver)
        self._subscriber: Any = None
        self._identity: str | None = None
        self._lock = asyncio.Lock()

    async def look(self) -> None:
        """Bind, bind again, or let go, as the server's consumer demands; what fails is tried at the next look."""
        async with self._lock:
            try:
                await self._look()
            except Exception as error:
                log.exception("consumer could not be bound", extra={"consumer": self.row.name, "reason": repr(error)})
                self.connection.state.missing_consumers.add(self.row.name)

    async def _look(self) -> None:
        name = self.row.name
        try:
            info = await self.connection.js.consumer_info(self.row.stream, name)
        except (nats.js.errors.NotFoundError, nats.js.errors.ServiceUnavailableError):
            if name not in self.connection.state.missing_consumers:
                log.error("consumer is missing; waiting for it to be made", extra={"consumer": name})
            self.connection.state.missing_consumers.add(name)
            await self._unbind()
            return
        except (nats.errors.Error, TimeoutError) as error:
            log.warning("consumer cannot be looked at", extra={"consumer": name, "reason": repr(error)})
            return
        if self._subscriber is None or self._identity != str(info.created):
            await self._unbind()
            await self._bind()
            self._identity = str(info.created)
        self.connection.state.missing_consumers.discard(name)
        PENDING.labels(name).set(info.num_pending or 0)
        UNACKED.labels(name).set(info.num_ack_pending or 0)
        REDELIVERED.labels(name).set(info.num_redelivered or 0)

    async def rebind(self) -> None:
        """Ask anew after a reconnection: the server forgot the fetch that waits."""
        async with self._lock:
            await self._unbind()
        await self.look()

    async def stop(self) -> None:
        """Fetch no more and finish what was fetched."""
        async with self._lock:
            await self._unbind()
        if not await self.slots.finish(STOP_WITHIN_S):
            log.warning("event handlers were cut off at stop", extra={"consumer": self.row.name})

    async def _bind(self) -> None:
        subscriber: Any = self.connection.broker.subscriber(
            self.row.filter_subjects[0],
            stream=JStream(self.row.stream, declare=False),
            durable=self.row.name,
            pull_sub=PullSub(batch_size=self.together),
            ack_policy=AckPolicy.MANUAL,
            no_reply=True,
            decoder=as_it_is,
            persistent=False,
        )

        async def take(message: NatsMessage) -> None:
            await self.slots.take(message.raw_message)

        async def bind() -> None:
            # Its own way makes a consumer that went away since we looked, which is refused and noted as a defect.
            inner = await self.connection.js.pull_subscribe_bind(
                consumer=self.row.name,
                stream=self.row.stream,
                inbox_prefix=f"{matrix.BY_NAME[self.row.owner].inbox_prefix}.".encode(),
            )
            subscriber.subscription = PatientSubscription(inner)
            subscriber.add_task(subscriber._consume_pull, func_kwargs={"cb": subscriber.consume})

        subscriber(take)
        subscriber._create_subscription = bind
        self._subscriber = subscriber
        try:
            await subscriber.start()
        except BaseException:
            await self._unbind()
            raise

    async def _unbind(self) -> None:
        subscriber, self._subscriber = self._subscriber, None
        if subscriber is not None:
            await subscriber.stop()

    async def _deliver(self, message: Msg) -> None:
        meta = message.metadata
        raw = RawMessage(
            message.subject, message.data, message.headers or {}, meta.stream, meta.sequence.stream, meta.num_delivered
        )
        try:
            # The server delivers more often than we handle: a message that kills its process is caught here.
            if raw.deliveries > self.row.max_deliver:
                await self._bury(message, raw, f"delivered {raw.deliveries - 1} times and never finished")
                return
            with self._span(raw):
                await self._handle_beating(message, raw)
        except PoisonError as error:
            await self._bury(message, raw, str(error))
        except asyncio.CancelledError:
            await self._again(message, 0)
            raise
        except Exception as error:  # noqa: BLE001 (the edge: an event that fails is delivered again or buried)
            await self._failed(message, raw, error)
        else:
            HANDLED.labels(self.row.name, "ok").inc()
            try:
                await message.ack()
            except nats.errors.Error as error:
                log.warning("handled, but not acknowledged; it comes again", extra={"reason": repr(error)})

    def _span(self, raw: RawMessage) -> AbstractContextManager[object]:
        if not self.traced:
            return nullcontext()
        links = [link] if (link := remote_context(raw.headers)) is not None else []
        name = f"hear {'.'.join(raw.subject.split('.')[1:4])}"
        return span(name, {"messaging.deliveries": raw.deliveries}, kind="consumer", links=links)

    async def _handle_beating(self, message: Msg, raw: RawMessage) -> None:
        """Run the handler, telling the server every third of the ack wait that it still runs."""
        work = asyncio.ensure_future(self.handle(raw))
        try:
            while not (await asyncio.wait({work}, timeout=self.row.ack_wait_s / 3))[0]:
                await message.in_progress()
            work.result()
        finally:
            work.cancel()

    async def _failed(self, message: Msg, raw: RawMessage, error: Exception) -> None:
        reason = error.message if isinstance(error, AppError) else repr(error)
        expected = isinstance(error, AppError) and error.http_status < 500
        log.log(
            logging.WARNING if expected else logging.ERROR,
            "event handler failed",
            exc_info=None if expected else error,
            extra={"consumer": self.row.name, "subject": raw.subject, "deliveries": raw.deliveries, "reason": reason},
        )
        if raw.deliveries >= self.row.max_deliver:
            await self._bury(message, raw, reason)
            return
        HANDLED.labels(self.row.name, "again").inc()
        await self._again(message, self.backoff_s[min(raw.deliveries, len(self.backoff_s)) - 1])

    async def _again(self, message: Msg, delay_s: float) -> None:
        try:
            await message.nak(delay=delay_s or None)
        except nats.errors.Error as error:
            log.warning("could not ask for redelivery; the ack wait does it", extra={"reason": repr(error)})

    async def _bury(self, message: Msg, raw: RawMessage, reason: str) -> None:
        """Copy the message to the dlq with the reason; only then it is terminated."""
        headers = {
            **{key: value for key, value in raw.headers.items() if not key.startswith("Nats-")},
            "Popagent-Reason": one_line(redact(reason), 1_000).encode("ascii", "replace").decode(),
            "Popagent-Subject": raw.subject,
            "Popagent-Consumer": self.row.name,
            "Popagent-Stream-Seq": str(raw.seq),
            "Popagent-Deliveries": str(raw.deliveries),
        }
        subject = matrix.dlq_subject(self.connection.service, self.row.name)
        msg_id = f"dlq-{self.row.name}-{raw.stream}-{raw.seq}"
        try:
            try:
                await self.connection.publish(subject, raw.data, msg_id, headers)
            except TooLargeError:  # it filled a message by itself; the reason does not fit beside it
                headers["Popagent-Cut"] = str(len(raw.data))
                await self.connection.publish(subject, raw.data[:CUT_BYTES], msg_id, headers)
        except UnavailableError as error:
            log.warning("dlq does not take the message yet", extra={"reason": error.message})
            await self._again(message, self.backoff_s[0])
            return
        HANDLED.labels(self.row.name, "dlq").inc()
        log.error("message moved to the dlq", extra={"subject": raw.subject, "seq": raw.seq, "reason": reason})
        try:
            await message.term()
        except nats.errors.Error as error:
            log.warning("could not end delivery; the next one is dropped as known", extra={"reason": repr(error)})


class Consuming:
    """All durable consumers of a service, and the watchdog that looks at them."""

    def __init__(
        self,
        connection: Connection,
        handlers: Handlers[Deps],
        deps: Deps,
        max_workers: int,
        backoff_s: tuple[float, ...] = BACKOFF_S,
    ) -> None:
        self.connection = connection
        self._events: dict[str, tuple[type[Any], list[Callable[[Any, Any], Awaitable[None]]]]] = handlers.events
        self._deps = deps
        self._versions: dict[str, str] = {subject.rpartition(".")[0]: subject for subject in handlers.events}
        self.durables: list[Durable] = []
        for row in (row for row in matrix.CONSUMERS if row.owner == connection.service):
            if (taker := handlers.raw.get(row.name)) is not None:
                # A span about storing telemetry would be telemetry to store, for ever.
                handle = self._raw_handle(taker)
                self.durables.append(
                    Durable(connection, row, handle, max_workers, backoff_s, traced=False, together=TOGETHER)
                )
            elif row.stream == matrix.EVENTS and handlers.events:
                self.durables.append(Durable(connection, row, self._hear, max_workers, backoff_s))
        self._watch: asyncio.Task[None] | None = None
        self._remove_listener: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Bind what exists now; what is missing is bound when it appears."""
        for durable in self.durables:
            await durable.look()
        if self.durables:
            self._remove_listener = self.connection.on_reconnect(self._rebind)
            self._watch = tasks.lasting(self._keep_looking, "consumer-watch")

    async def stop(self) -> None:
        """Fetch no more and finish what was fetched."""
        self._remove_listener()
        await tasks.end(self._watch)
        await asyncio.gather(*(durable.stop() for durable in self.durables))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if self.connection.connected:
                for durable in self.durables:
                    await durable.look()

    async def _rebind(self) -> None:
        for durable in self.durables:
            await durable.rebind()

    def _raw_handle(self, taker: Callable[[Any, RawMessage], Awaitable[None]]) -> Handle:
        async def handle(raw: RawMessage) -> None:
            await taker(self._deps, raw)

        return handle

    async def _hear(self, raw: RawMessage) -> None:
        subject = known_subject(raw.subject)
        known = self._events.get(subject)
        if known is None:
            if subject.rpartition(".")[0] in self._versions:
                raise PoisonError(f"unknown version of {self._versions[subject.rpartition('.')[0]]}: {subject}")
            return  # a fact that nobody here cares about
        event_type, handlers = known
        try:
            event = parse(event_type, raw.data)
        except (MalformedJsonError, InvalidInputError) as error:
            raise PoisonError(error.message) from error
        for handler in handlers:
            await handler(self._deps, event)
