"""The connection to NATS: reconnects for ever, says what was refused, publishes, and reads stored messages."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from faststream.nats import NatsBroker
from faststream.nats.security import NatsUserPassword
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js import JetStreamContext

from popagent_bus.state import BusState
from popagent_kit import json
from popagent_kit.errors import ConfigurationError, InvalidInputError, TooLargeError, UnavailableError
from popagent_kit.text import one_line
from popagent_proto import matrix
from popagent_telemetry import register_secret

CONNECT_TIMEOUT_S: Final = 30.0
RECONNECT_WAIT_S: Final = 0.15
PUBLISH_TIMEOUT_S: Final = 2.0
FLUSH_TIMEOUT_S: Final = 5
DIRECT_GET_TIMEOUT_S: Final = 2.0
DIRECT_GET_MESSAGES: Final = 1_000
DIRECT_GET_BYTES: Final = 4 * 1024 * 1024
# The server counts headers too, the client's own check does not, and too much ends the connection of everybody here.
HEADER_ROOM_BYTES: Final = 4 * 1024
# Each subject we publish to: plain tokens, so that an id can neither widen nor leave its place (hostile input 33).
PLAIN_SUBJECT: Final = re.compile(r"\A[A-Za-z0-9_$=-]+(\.[A-Za-z0-9_$=-]+)*\Z")
PLAIN_ID: Final = re.compile(r"\A[A-Za-z0-9_-]{1,128}\Z")
FORGIVEN: Final = (nats.errors.SlowConsumerError, nats.errors.TimeoutError)

Listener = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as a stream keeps it."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredPage:
    """Messages in order of their sequence, and how many of the subject follow after the last one."""

    messages: list[StoredMessage]
    pending: int


class StreamState(NamedTuple):
    """Identity changes when the stream was made anew; `last_seq` is 0 in an empty one."""

    identity: str
    last_seq: int


def check_subject(subject: str) -> None:
    """Refuse a subject with an empty token, a wildcard, a blank or a line break before it leaves.

    Raises:
        InvalidInputError: It is not a plain subject.
    """
    if PLAIN_SUBJECT.match(subject) is None:
        raise InvalidInputError(f"{subject[:80]!r} contains an id that is not letters, digits, '_' and '-'")


class Connection:
    """One process's connection; `client` is for what this class does not offer."""

    def __init__(self, url: str, *, service: str, user: str | None = None, password: str | None = None) -> None:
        register_secret(password or urlsplit(url).password, "nats")
        self.service = service
        self.state = BusState()
        self.broker = _make_broker(self, url, user, password)
        self.client: Client
        self.js: JetStreamContext
        self._listeners: list[Listener] = []
        self._background: set[asyncio.Task[None]] = set()

    async def open(self, timeout_s: float) -> None:
        """Connect, waiting for a server that is still starting.

        Raises:
            ConfigurationError: The server refused the credentials.
            UnavailableError: No server answered within `timeout_s`.
        """
        try:
            async with asyncio.timeout(timeout_s):
                self.client = await self.broker.connect()
        except TimeoutError as error:
            raise UnavailableError(f"NATS does not answer within {timeout_s:g} s") from error
        except nats.errors.Error as error:
            raise ConfigurationError(f"NATS refused the connection: {one_line(str(error))}") from error
        self.js = self.client.jetstream(timeout=PUBLISH_TIMEOUT_S)
        self.state.connected = True

    @property
    def connected(self) -> bool:
        """Tell whether there is a connection now."""
        return self.client.is_connected

    @property
    def max_payload(self) -> int:
        """Return how many bytes a message of ours may have, headers left out."""
        return self.client.max_payload - HEADER_ROOM_BYTES

    def check_size(self, payload: bytes) -> None:
        """Refuse what the server would answer by closing the connection.

        Raises:
            TooLargeError: Over the limit.
        """
        if len(payload) > self.max_payload:
            raise TooLargeError(f"{len(payload)} bytes are more than a message may have")

    def on_reconnect(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after every reconnection; returns what removes it again."""
        self._listeners.append(listener)

        def remove() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return remove

    async def publish(self, subject: str, payload: bytes, msg_id: str, headers: Mapping[str, str] | None = None) -> int:
        """Store a message in the stream that keeps `subject`; returns its sequence.

        The same `msg_id` within the stream's window (2 min) is stored once. After a timeout the message may yet
        arrive: publish it again with the same id.

        Raises:
            InvalidInputError: The subject or the id is not plain.
            TooLargeError: Over the server's limit.
            UnavailableError: Not stored, as far as is known.
        """
        check_subject(subject)
        if PLAIN_ID.match(msg_id) is None:
            raise InvalidInputError(f"{msg_id[:80]!r} cannot be a message id")
        self.check_size(payload)
        if not self.connected:
            raise UnavailableError("NATS is not connected", retry_after_s=1)
        try:
            ack = await self.js.publish(
                subject, payload, timeout=PUBLISH_TIMEOUT_S, headers={**(headers or {}), "Nats-Msg-Id": msg_id}
            )
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise UnavailableError(f"{subject} was not stored: {_reason(error)}", retry_after_s=1) from error
        return ack.seq

    async def send_telemetry(self, batch: bytes) -> None:
        """Publish a batch of spans and logs; raises as `publish` does."""
        subject = matrix.telemetry_subject(self.service)
        self.check_size(batch)
        if not self.connected:
            raise UnavailableError("NATS is not connected", retry_after_s=1)
        try:
            await self.js.publish(subject, batch, timeout=PUBLISH_TIMEOUT_S)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise UnavailableError(f"telemetry was not stored: {_reason(error)}") from error

    async def stream_state(self, stream: str) -> StreamState:
        """Return identity and last sequence of a stream this service may ask about.

        Raises:
            UnavailableError: NATS does not answer, or the stream is missing.
        """
        try:
            info = await self.js.stream_info(stream)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise UnavailableError(f"stream {stream} cannot be read: {_reason(error)}", retry_after_s=1) from error
        return StreamState(str(info.created), info.state.last_seq)

    async def backlog(self, stream: str, consumer: str) -> int:
        """Return how many messages a durable consumer of this service has not handled yet.

        Raises:
            UnavailableError: NATS does not answer, or the consumer is missing.
        """
        try:
            info = await self.js.consumer_info(stream, consumer)
        except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
            raise UnavailableError(f"consumer {consumer} cannot be read: {_reason(error)}", retry_after_s=1) from error
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    async def direct_get(
        self, stream: str, subject: str, from_seq: int = 1, *, messages: int = DIRECT_GET_MESSAGES
    ) -> StoredPage:
        """Return stored messages of `subject` (wildcards allowed) from `from_seq` on, at most 4 MiB at a time.

        Raises:
            UnavailableError: NATS does not answer, or the stream is missing.
        """
        found: list[StoredMessage] = []
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def take(message: Msg) -> None:
            headers = message.headers or {}
            if (status := headers.get("Status")) is None:
                seq, of = int(headers["Nats-Sequence"]), headers["Nats-Subject"]
                found.append(StoredMessage(seq, of, message.data, headers))
            elif not done.done():
                if status in {"204", "404"}:
                    done.set_result(int(headers.get("Nats-Num-Pending", "0")))
                else:
                    done.set_exception(UnavailableError(f"stream {stream}: {headers.get('Description', status)}"))

        inbox = self.client.new_inbox()
        request = {"batch": messages, "max_bytes": DIRECT_GET_BYTES, "seq": from_seq, "next_by_subj": subject}
        subscription = await self.client.subscribe(inbox, cb=take)
        try:
            await self.client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(request), reply=inbox)
            async with asyncio.timeout(DIRECT_GET_TIMEOUT_S):
                pending = await done
        except (nats.errors.Error, TimeoutError) as error:
            raise UnavailableError(f"stream {stream} cannot be read: {_reason(error)}", retry_after_s=1) from error
        finally:
            await unsubscribe(subscription)
        return StoredPage(found, pending)

    async def subscribe(
        self, subject: str, callback: Callable[[Msg], Awaitable[None]], *, queue: str = ""
    ) -> Subscription:
        """Hear core messages; end it with `unsubscribe`."""
        return await self.client.subscribe(subject, queue=queue, cb=callback)

    async def wake(self, subject: str) -> None:
        """Say "look at your rows now"; may be lost, so never raises for an absent NATS."""
        check_subject(subject)
        try:
            await self.client.publish(subject)
        except (nats.errors.OutboundBufferLimitError, nats.errors.ConnectionClosedError) as error:
            log.debug("wake-up lost", extra={"subject": subject, "reason": repr(error)})

    async def on_wake(self, subject: str, callback: Listener) -> Subscription:
        """Call `callback` at every wake-up; it must return at once (set an event)."""

        async def woken(_: Msg) -> None:
            await callback()

        return await self.client.subscribe(subject, cb=woken)

    async def flush(self) -> None:
        """Wait until the server has processed everything sent so far, subscriptions too."""
        try:
            # The client writes its PING ahead of what is buffered: only the answer to a second one proves anything.
            await self.client.flush(timeout=FLUSH_TIMEOUT_S)
            await self.client.flush(timeout=FLUSH_TIMEOUT_S)
        except (nats.errors.Error, TimeoutError) as error:
            log.warning("could not flush to NATS", extra={"reason": _reason(error)})

    async def leave(self, subscription: Subscription) -> None:
        """End a subscription so that every message that the server had given to us is handled."""
        # The client's own drain has the same flaw as its flush: what came between PING and UNSUB would be lost.
        await self.client._send_unsubscribe(subscription._id)
        await self.flush()
        await subscription.drain()  # type: ignore[no-untyped-call]

    def in_background(self, work: Awaitable[None], name: str) -> None:
        """Run `work` beside the caller; an error is logged."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("background work of the bus failed", extra={"work": name})

        task = asyncio.get_running_loop().create_task(guarded(), name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def settle(self) -> None:
        """Wait for what runs in the background, live frames on their way to the socket above all."""
        while self._background:
            await asyncio.wait(set(self._background), timeout=PUBLISH_TIMEOUT_S)

    async def _on_error(self, error: Exception) -> None:
        text = one_line(str(error))
        if "permissions violation" in text.lower():
            self.state.note_refusal(text)
            log.error("NATS refused: %s", text)
        elif isinstance(error, FORGIVEN) or self.state.connected:
            log.warning("NATS reports an error: %r", error)

    async def _on_disconnect(self) -> None:
        if self.state.connected:
            log.warning("connection to NATS lost; trying again")
        self.state.connected = False

    async def _on_reconnect(self) -> None:
        self.state.connected = True
        self.state.reconnects += 1
        log.info("connected to NATS again")
        for listener in tuple(self._listeners):
            self.in_background(listener(), "after reconnection")

    async def _on_closed(self) -> None:
        self.state.connected = False
        self.state.closed = True


def _make_broker(connection: Connection, url: str, user: str | None, password: str | None) -> NatsBroker:
    row = matrix.BY_NAME.get(connection.service)
    return NatsBroker(
        url,
        name=f"popagent-{connection.service}",
        inbox_prefix=row.inbox_prefix if row else "_INBOX_" + connection.service.replace("-", "_"),
        security=NatsUserPassword(user, password) if user and password else None,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]
        connect_timeout=2,
        ping_interval=10,
        max_outstanding_pings=2,
        apply_types=False,
        logger=None,
        error_cb=connection._on_error,
        disconnected_cb=connection._on_disconnect,
        reconnected_cb=connection._on_reconnect,
        closed_cb=connection._on_closed,
    )


def _reason(error: BaseException) -> str:
    return one_line(str(error)) or type(error).__name__


async def unsubscribe(subscription: Subscription) -> None:
    """End a subscription, also one that the end of the connection has ended already."""
    try:
        await subscription.unsubscribe()
    except (
        nats.errors.BadSubscriptionError,
        nats.errors.ConnectionClosedError,
        nats.errors.ConnectionDrainingError,
    ) as error:
        log.debug("subscription was over", extra={"reason": repr(error)})
