"""Things too big for a message: parts in an object-store bucket for an hour, named by id and held to their SHA-256.

The layout is that of NATS's own object store, so that its tools can read it; reading goes by direct get, because the
store's own client would need the right to create consumers.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import AsyncIterable, AsyncIterator
from typing import Final

import nats.errors
import nats.js.errors

from popagent_bus.connection import PUBLISH_TIMEOUT_S, Connection
from popagent_kit import json
from popagent_kit.clock import now, wire_time
from popagent_kit.errors import InternalError, NotFoundError, TooLargeError, UnavailableError
from popagent_kit.ids import new_id
from popagent_proto import matrix
from popagent_proto.common import BlobRef

MAX_BYTES: Final = 64 * 1024 * 1024
PART_BYTES: Final = 512 * 1024
STREAM: Final = f"OBJ_{matrix.BLOBS}"
log = logging.getLogger(__name__)


def _parts_subject(blob_id: str) -> str:
    return f"$O.{matrix.BLOBS}.C.{blob_id}"


def _meta_subject(blob_id: str) -> str:
    return f"$O.{matrix.BLOBS}.M.{base64.urlsafe_b64encode(blob_id.encode()).decode()}"


async def put(connection: Connection, data: bytes | AsyncIterable[bytes], *, media_type: str) -> BlobRef:
    """Store bytes, or what an iterator yields, for an hour.

    Raises:
        TooLargeError: More than 64 MB; what was stored of it goes within the hour.
        UnavailableError: NATS does not take it.
    """
    blob_id = new_id()
    digest = hashlib.sha256()
    size = parts = 0
    async for part in _in_parts(data):
        size += len(part)
        if size > MAX_BYTES:
            raise TooLargeError(f"more than {MAX_BYTES // 1024 // 1024} MB cannot be passed on")
        digest.update(part)
        await _store(connection, _parts_subject(blob_id), part)
        parts += 1
    meta = {
        "name": blob_id,
        "bucket": matrix.BLOBS,
        "nuid": blob_id,
        "size": size,
        "chunks": parts,
        "digest": f"SHA-256={base64.urlsafe_b64encode(digest.digest()).decode()}",
        "mtime": wire_time(now()),
        "headers": {"Content-Type": [media_type]},
        "options": {"max_chunk_size": PART_BYTES},
    }
    await _store(connection, _meta_subject(blob_id), json.dumps(meta))
    return BlobRef(id=blob_id, size_bytes=size, sha256=digest.hexdigest(), media_type=media_type)


async def get(connection: Connection, ref: BlobRef) -> bytes:
    """Return the bytes of `ref`.

    Raises:
        NotFoundError: Its hour is over.
        InternalError: Other bytes than were stored.
        UnavailableError: NATS does not answer.
    """
    return b"".join([part async for part in read(connection, ref)])


async def read(connection: Connection, ref: BlobRef) -> AsyncIterator[bytes]:
    """Yield the parts of `ref`; raises as `get` does, a wrong digest after the last part."""
    digest = hashlib.sha256()
    size, from_seq = 0, 1
    while size < ref.size_bytes:
        page = await connection.direct_get(STREAM, _parts_subject(ref.id), from_seq)
        if not page.messages:
            raise NotFoundError("what was handed over is gone; it is kept for an hour")
        for message in page.messages:
            size += len(message.data)
            digest.update(message.data)
            yield message.data
        from_seq = page.messages[-1].seq + 1
    if size != ref.size_bytes or digest.hexdigest() != ref.sha256:
        log.error("blob differs from its digest", extra={"blob": ref.id})
        raise InternalError("what arrived is not what was handed over")


async def _store(connection: Connection, subject: str, data: bytes) -> None:
    try:
        await connection.js.publish(subject, data, timeout=PUBLISH_TIMEOUT_S)
    except (nats.errors.Error, nats.js.errors.Error, TimeoutError) as error:
        raise UnavailableError(f"the blob was not stored: {error!r}", retry_after_s=1) from error


async def _in_parts(data: bytes | AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        for start in range(0, len(data), PART_BYTES):
            yield data[start : start + PART_BYTES]
        return
    held = bytearray()
    async for piece in data:
        held += piece
        while len(held) >= PART_BYTES:
            yield bytes(held[:PART_BYTES])
            del held[:PART_BYTES]
    if held:
        yield bytes(held)
