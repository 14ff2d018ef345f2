"""Secrets: sealed for one row, read with one key, told by nobody."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic import SecretStr

from popagent_chat.secrets.handlers import SecretsCheck
from popagent_chat.secrets.keyring import Keyring, SecretKeyError, SecretUnreadableError
from popagent_chat.secrets.store import PUT
from popagent_db.pool import open_pool
from popagent_kit.errors import AppError

RING = Keyring(bytes(range(32)))
OTHER = Keyring(bytes(32))
VALUE = SecretStr("sk-a-value-of-a-person")


def test_a_blob_opens_for_its_row_with_its_key_alone() -> None:
    blob = RING.seal(VALUE, "models", "connection")

    assert RING.open(blob, "models", "connection") == VALUE
    assert VALUE.get_secret_value().encode() not in blob
    assert RING.seal(VALUE, "models", "connection") != blob
    for ring, resource, name, data in [
        (OTHER, "models", "connection", blob),
        (RING, "models", "other", blob),
        (RING, "model", "sconnection", blob),
        (RING, "models", "connection", blob[:-1] + bytes([blob[-1] ^ 1])),
        (RING, "models", "connection", blob[:20]),
        (RING, "models", "connection", b""),
    ]:
        with pytest.raises(SecretUnreadableError) as refused:
            ring.open(data, resource, name)
        assert VALUE.get_secret_value() not in repr(refused.value)


@pytest.mark.parametrize("setting", [None, SecretStr("nonsense"), SecretStr("")])
def test_without_a_usable_key_every_use_says_what_to_do(setting: SecretStr | None) -> None:
    ring = Keyring.of(setting)

    assert "POPAGENT_SECRET_KEY" in ring.trouble
    for use in (ring.public_key, lambda: ring.seal(VALUE, "models", "connection")):
        with pytest.raises(SecretKeyError, match="POPAGENT_SECRET_KEY") as refused:
            use()
        assert refused.value.http_status == 409


async def test_stored_secrets_that_cannot_be_read_are_told_and_a_missing_key_alone_is_not(
    service_database: Callable[[str], str],
) -> None:
    pool = await open_pool(service_database("chat"), application_name="test", max_size=1)
    keyless = Keyring.of(None)
    await SecretsCheck(pool, keyless)()
    async with pool.acquire() as conn:
        await PUT.run(conn, "models", "connection", RING.key_id(), RING.seal(VALUE, "models", "connection"))

    await SecretsCheck(pool, RING)()
    told = []
    for ring in (OTHER, keyless):
        with pytest.raises(AppError) as refused:
            await SecretsCheck(pool, ring)()
        told.append(refused.value.message)
    await pool.close()

    assert told[0] == (
        "A stored secret cannot be read: POPAGENT_SECRET_KEY is not the key that sealed it, or the secret was changed."
    )
    assert told[0] == SecretUnreadableError().message
    assert "POPAGENT_SECRET_KEY is not set" in told[1]
