from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest

from popagent_bus import Bus, blobs
from popagent_bus.streams import connect_admin
from popagent_kit.errors import InternalError, NotFoundError, TooLargeError
from popagent_proto import matrix
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


@pytest.fixture
async def chat(connect_as: ConnectAs) -> Bus:
    return await connect_as("chat")


@pytest.mark.parametrize("size", [0, 1, blobs.PART_BYTES, blobs.PART_BYTES * 3 + 7])
async def test_what_one_service_puts_another_gets(chat: Bus, connect_as: ConnectAs, size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    gateway = await connect_as("gateway")

    ref = await blobs.put(gateway, data, media_type="application/zip")

    assert (ref.size_bytes, ref.sha256, ref.media_type) == (size, hashlib.sha256(data).hexdigest(), "application/zip")
    assert await blobs.get(chat, ref) == data
    assert gateway.state.permission_errors == chat.state.permission_errors == []


async def test_twenty_megabytes_stream_through_in_bounded_parts(chat: Bus) -> None:
    async def source() -> AsyncIterator[bytes]:
        for number in range(20):
            yield bytes([number]) * 1024 * 1024

    ref = await blobs.put(chat, source(), media_type="image/png")
    digest, largest = hashlib.sha256(), 0
    async for part in blobs.read(chat, ref):
        digest.update(part)
        largest = max(largest, len(part))

    assert digest.hexdigest() == ref.sha256
    assert largest == blobs.PART_BYTES


async def test_more_than_the_limit_is_refused(chat: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MAX_BYTES", 1024 * 1024)

    with pytest.raises(TooLargeError):
        await blobs.put(chat, b"x" * (1024 * 1024 + 1), media_type="text/plain")


async def test_what_is_gone_or_changed_is_told(chat: Bus) -> None:
    ref = await blobs.put(chat, b"one", media_type="text/plain")
    await chat.js.publish(f"$O.{matrix.BLOBS}.C.{ref.id}", b"two")

    with pytest.raises(InternalError):
        await blobs.get(chat, ref)
    with pytest.raises(NotFoundError):
        await blobs.get(chat, ref.model_copy(update={"id": "unknown"}))


async def test_the_store_s_own_tools_can_read_it(chat: Bus, suite_nats: NatsServer) -> None:
    ref = await blobs.put(chat, b"abc" * 300_000, media_type="text/plain")
    admin = await connect_admin(suite_nats.url, matrix.ADMIN_USER, PASSWORDS["admin"])

    store = await admin.jetstream().object_store(matrix.BLOBS)
    found = await store.get(ref.id)
    await admin.close()

    assert found.data == b"abc" * 300_000
