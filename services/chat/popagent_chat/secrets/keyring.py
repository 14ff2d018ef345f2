"""Seals values for the database and opens them again; an envelope each, so that a value never meets the main key.

Blob: version, key id, wrapped data key, ciphertext. Version, key id, resource and name are bound to both by AES-GCM: a
blob that was moved to another row does not open.
"""

from __future__ import annotations

import os
from typing import Final

from pydantic import SecretStr

from popagent_kit import sealing
from popagent_kit.errors import ConflictError
from popagent_kit.sealing import KEY_BYTES, NONCE_BYTES, TAG_BYTES, SealError
from popagent_kit.settings import command
from popagent_telemetry import register_secret

VERSION: Final = b"\x01"
KEY_ID_BYTES: Final = 8
_HEAD: Final = len(VERSION) + KEY_ID_BYTES
_WRAPPED: Final = NONCE_BYTES + KEY_BYTES + TAG_BYTES


class SecretKeyError(ConflictError):
    """Secrets cannot be kept: POPAGENT_SECRET_KEY is missing or is not 32 bytes in base64."""

    code = "secret_key"


class SecretUnreadableError(ConflictError):
    """A stored secret cannot be read: POPAGENT_SECRET_KEY is not the key that sealed it, or the secret was changed."""

    code = "secret_unreadable"


class SealedForAnotherError(ConflictError):
    """The value was sealed for another key than the one in use now. Send it again."""

    code = "sealed_for_another"


class Keyring:
    """What one main key gives; without a usable one every call says what to do, and nothing else stops working."""

    def __init__(self, key: bytes | None, trouble: str = "") -> None:
        self._key = key
        self.trouble = trouble
        """Why nothing can be sealed or opened; empty when all is well."""
        self._derived: dict[bytes, bytes] = {}

    @classmethod
    def of(cls, setting: SecretStr | None) -> Keyring:
        """Return the ring of the setting POPAGENT_SECRET_KEY, whatever it holds."""
        if setting is None:
            return cls(
                None, f"POPAGENT_SECRET_KEY is not set. `{command('up')}` makes one; in containers `provision` does."
            )
        register_secret(setting.get_secret_value(), "POPAGENT_SECRET_KEY")
        key = sealing.key_bytes(setting.get_secret_value())
        if key is None:
            return cls(None, "POPAGENT_SECRET_KEY is not 32 bytes in base64. Put the right one back from your backup.")
        return cls(key)

    def key_id(self) -> bytes:
        """Return what tells one main key from another and nothing more."""
        return self._part(b"popagent secrets: key id v1")[:KEY_ID_BYTES]

    def public_key(self) -> str:
        """Return the key that others seal values to."""
        return sealing.public_half(self._sealing_key())

    def received(self, box: str, purpose: str) -> SecretStr:
        """Open what was sealed to `public_key` for `purpose`.

        Raises:
            SecretKeyError: There is no usable key.
            SealedForAnotherError: It was sealed for another key, or for another purpose.
        """
        try:
            return SecretStr(sealing.opened(self._sealing_key(), box, purpose))
        except SealError:
            raise SealedForAnotherError from None

    def seal(self, value: SecretStr, resource: str, name: str) -> bytes:
        """Return the blob for the row (`resource`, `name`).

        Raises:
            SecretKeyError: There is no usable key.
        """
        head = VERSION + self.key_id()
        context = _context(head, resource, name)
        data_key = os.urandom(KEY_BYTES)
        wrapped = sealing.encrypted(self._wrapping_key(), data_key, context)
        return head + wrapped + sealing.encrypted(data_key, value.get_secret_value().encode(), context)

    def open(self, blob: bytes, resource: str, name: str) -> SecretStr:
        """Return the value of the row.

        Raises:
            SecretKeyError: There is no usable key.
            SecretUnreadableError: Another key sealed it, or it was changed or moved.
        """
        head, wrapped, rest = blob[:_HEAD], blob[_HEAD : _HEAD + _WRAPPED], blob[_HEAD + _WRAPPED :]
        context = _context(head, resource, name)
        if head != VERSION + self.key_id():
            raise SecretUnreadableError
        try:
            data_key = sealing.decrypted(self._wrapping_key(), wrapped, context)
            return SecretStr(sealing.decrypted(data_key, rest, context).decode())
        except SealError:
            raise SecretUnreadableError from None

    def _wrapping_key(self) -> bytes:
        return self._part(b"popagent secrets: wrapping v1")

    def _sealing_key(self) -> bytes:
        return self._part(b"popagent secrets: sealing v1")

    def _part(self, purpose: bytes) -> bytes:
        if self._key is None:
            raise SecretKeyError(f"Secrets cannot be kept or read: {self.trouble}")
        if purpose not in self._derived:
            self._derived[purpose] = sealing.derived(self._key, purpose)
        return self._derived[purpose]


def _context(head: bytes, resource: str, name: str) -> bytes:
    parts = (head, resource.encode(), name.encode())
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
