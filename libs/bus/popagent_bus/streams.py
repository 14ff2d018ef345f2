"""Streams, consumers and the blob bucket, as the matrix says; made and kept by whoever holds the admin's password."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from popagent_bus.settings import StreamSettings
from popagent_kit.errors import UnavailableError
from popagent_kit.text import one_line
from popagent_proto import matrix

CHECK_S: Final = 60.0
AGAIN_S: Final = 0.5
CONNECT_TIMEOUT_S: Final = 30.0
RECONNECT_WAIT_S: Final = 0.15
# Short: a request that was lost with the connection should not delay what comes after the reconnection.
KEEPER_TIMEOUT_S: Final = 1.0
# A wipe deletes many at once; one pass makes them all.
SETTLE_S: Final = 0.05
# The server delivers a little more often than we handle, so that a message that kills its process reaches the dlq.
SPARE_DELIVERIES: Final = 5
LIVE: Final = frozenset(matrix.live_stream(row.name) for row in matrix.SERVICES if row.writes_live)
ADVISORIES: Final = ("$JS.EVENT.ADVISORY.STREAM.DELETED.*", "$JS.EVENT.ADVISORY.CONSUMER.DELETED.>")

log = logging.getLogger(__name__)


def stream_config(row: matrix.StreamRow, replicas: int = 1) -> api.StreamConfig:
    """Return the server's form of a stream: on disk, oldest dropped first, readable by direct get."""
    age_s = min(row.max_age_s, StreamSettings.load().live_age_s) if row.name in LIVE else row.max_age_s
    return api.StreamConfig(
        name=row.name,
        subjects=list(row.subjects),
        retention=api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.OLD,
        storage=api.StorageType.FILE,
        max_age=age_s,
        max_bytes=row.max_bytes,
        duplicate_window=min(row.duplicate_window_s, age_s),
        num_replicas=replicas,
        allow_direct=True,
    )


def blob_config(replicas: int = 1) -> api.StreamConfig:
    """Return the stream behind the object-store bucket."""
    return api.StreamConfig(
        name=f"OBJ_{matrix.BLOBS}",
        subjects=[f"$O.{matrix.BLOBS}.C.>", f"$O.{matrix.BLOBS}.M.>"],
        retention=api.RetentionPolicy.LIMITS,
        discard=api.DiscardPolicy.OLD,
        storage=api.StorageType.FILE,
        max_age=matrix.BLOBS_MAX_AGE_S,
        max_bytes=matrix.BLOBS_MAX_BYTES,
        duplicate_window=120,
        num_replicas=replicas,
        allow_direct=True,
        allow_rollup_hdrs=True,
    )


def consumer_config(row: matrix.ConsumerRow) -> api.ConsumerConfig:
    """Return the server's form of a durable pull consumer."""
    return api.ConsumerConfig(
        name=row.name,
        durable_name=row.name,
        deliver_policy=api.DeliverPolicy.ALL,
        ack_policy=api.AckPolicy.EXPLICIT,
        ack_wait=row.ack_wait_s,
        max_deliver=row.max_deliver + SPARE_DELIVERIES,
        max_ack_pending=row.max_ack_pending,
        filter_subjects=list(row.filter_subjects),
    )


async def declare_streams(js: JetStreamContext, *, replicas: int = 1) -> list[str]:
    """Make what is missing and bring limits up to date; repeatable. Returns the names of what was made or changed.

    Raises:
        UnavailableError: NATS does not answer, or refuses a change (another retention, overlapping subjects).
    """
    try:
        configs = (*(stream_config(row, replicas) for row in matrix.STREAMS), blob_config(replicas))
        changed = [str(config.name) for config in configs if await _declare_stream(js, config)]
        changed += [row.name for row in matrix.CONSUMERS if await _declare_consumer(js, row)]
    except (nats.errors.Error, TimeoutError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise UnavailableError(f"NATS streams cannot be made: {reason}") from error
    return changed


async def _declare_stream(js: JetStreamContext, config: api.StreamConfig) -> bool:
    try:
        found = (await js.stream_info(str(config.name))).config
    except nats.js.errors.NotFoundError:
        await js.add_stream(config)
        return True
    names = (
        "subjects",
        "max_age",
        "max_bytes",
        "duplicate_window",
        "num_replicas",
        "allow_direct",
        "allow_rollup_hdrs",
    )
    if all((getattr(found, name) or None) == (getattr(config, name) or None) for name in names):
        return False
    await js.update_stream(config)
    return True


async def _declare_consumer(js: JetStreamContext, row: matrix.ConsumerRow) -> bool:
    config = consumer_config(row)
    try:
        found = (await js.consumer_info(row.stream, row.name)).config
    except nats.js.errors.NotFoundError:
        found = None
    if found is not None:
        filters = sorted(found.filter_subjects or [found.filter_subject])
        names = ("ack_wait", "max_deliver", "max_ack_pending")
        same = all(getattr(found, name) == getattr(config, name) for name in names)
        if same and filters == sorted(config.filter_subjects or []):
            return False
    await js.add_consumer(row.stream, config)
    return True


async def connect_admin(
    url: str,
    user: str | None = None,
    password: str | None = None,
    on_reconnect: Callable[[], Awaitable[None]] | None = None,
) -> Client:
    """Connect as the one that may make streams, waiting for a server that is still starting.

    Raises:
        UnavailableError: No server within 30 s, or it refuses the credentials.
    """

    async def quiet(error: Exception) -> None:
        log.debug("admin connection", extra={"reason": repr(error)})

    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            return await nats.connect(
                url,
                user=user,
                password=password,
                name="popagent-streams",
                max_reconnect_attempts=-1,
                reconnect_time_wait=RECONNECT_WAIT_S,
                connect_timeout=2,
                ping_interval=10,
                error_cb=quiet,
                reconnected_cb=on_reconnect,
            )
    except (nats.errors.Error, OSError, TimeoutError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise UnavailableError(f"NATS does not take the admin's connection: {reason}") from error


async def declare(url: str, user: str | None = None, password: str | None = None) -> list[str]:
    """Connect, declare, close: what `popagent bootstrap` and `popagent up` call."""
    client = await connect_admin(url, user, password)
    try:
        return await declare_streams(client.jetstream())
    finally:
        await client.close()


async def keep_streams(url: str, user: str | None = None, password: str | None = None) -> None:
    """Declare now, after every reconnection, when one was deleted, and every minute; ends by cancellation only."""
    wanted = asyncio.Event()

    async def look() -> None:
        wanted.set()

    async def deleted(_: Msg) -> None:
        wanted.set()

    client = await connect_admin(url, user, password, look)
    js = client.jetstream(timeout=KEEPER_TIMEOUT_S)
    try:
        for subject in ADVISORIES:
            await client.subscribe(subject, cb=deleted)
        while True:
            wanted.clear()
            again_s = CHECK_S
            try:
                if made := await declare_streams(js):
                    log.info("streams made or brought up to date", extra={"names": ", ".join(made)})
            except UnavailableError as error:
                log.warning("streams are not complete", extra={"reason": error.message})
                again_s = AGAIN_S
            try:
                async with asyncio.timeout(again_s):
                    await wanted.wait()
                await asyncio.sleep(SETTLE_S)
            except TimeoutError:
                continue
    finally:
        await client.close()
