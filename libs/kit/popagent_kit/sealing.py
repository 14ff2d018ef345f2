"""Boxes that only the owner of a key opens: sealed by whoever knows its public half, for one named purpose.

X25519 with a key made for the one box, HKDF-SHA256, AES-256-GCM. The library is loaded at the first use: most processes
never need it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
_BOX: Final = b"popagent sealed box v1"


class SealError(Exception):
    """The box was not made for this key and purpose, or is damaged; which of them is not told."""


def key_bytes(text: str) -> bytes | None:
    """Return the 32 bytes that `text` stands for in base64, None when it does not."""
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None


def derived(key: bytes, purpose: bytes) -> bytes:
    """Return 32 bytes that tell nothing about `key` nor about what it gives for another purpose (RFC 5869, no salt)."""
    extracted = hmac.digest(bytes(KEY_BYTES), key, "sha256")
    return hmac.digest(extracted, purpose + b"\x01", "sha256")


def encrypted(key: bytes, data: bytes, context: bytes) -> bytes:
    """Return nonce and ciphertext of `data`; `context` must be the same again when it is read."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 (see the module)

    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, data, context)


def decrypted(key: bytes, data: bytes, context: bytes) -> bytes:
    """Return what `encrypted` took.

    Raises:
        SealError: Another key, another context, or a changed byte.
    """
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

    if len(data) < NONCE_BYTES + TAG_BYTES:
        raise SealError
    try:
        return AESGCM(key).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], context)
    except InvalidTag:
        raise SealError from None


def public_half(private: bytes) -> str:
    """Return the public key that belongs to these 32 private bytes, base64url."""
    return _text(_private(private).public_key().public_bytes_raw())


def sealed(public: str, text: str, purpose: str) -> str:
    """Return a box with `text` that only the private key opens, and only for `purpose`; base64url.

    Raises:
        SealError: `public` is no key.
    """
    from cryptography.hazmat.primitives.asymmetric import x25519  # noqa: PLC0415

    receiver = _bytes(public)
    if len(receiver) != KEY_BYTES:
        raise SealError
    once = x25519.X25519PrivateKey.generate()
    mine = once.public_key().public_bytes_raw()
    try:
        shared = once.exchange(x25519.X25519PublicKey.from_public_bytes(receiver))
    except ValueError:
        raise SealError from None
    return _text(mine + encrypted(_box_key(shared, mine, receiver), text.encode(), purpose.encode()))


def opened(private: bytes, box: str, purpose: str) -> str:
    """Return the text of a box.

    Raises:
        SealError: It was made for another key or purpose, or is damaged.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey  # noqa: PLC0415

    data = _bytes(box)
    theirs, rest = data[:KEY_BYTES], data[KEY_BYTES:]
    if len(theirs) != KEY_BYTES:
        raise SealError
    mine = _private(private)
    try:
        shared = mine.exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError:
        raise SealError from None
    key = _box_key(shared, theirs, mine.public_key().public_bytes_raw())
    return decrypted(key, rest, purpose.encode()).decode()


def _box_key(shared: bytes, sender: bytes, receiver: bytes) -> bytes:
    return derived(shared, _BOX + sender + receiver)


def _private(key: bytes) -> X25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey  # noqa: PLC0415

    return X25519PrivateKey.from_private_bytes(key)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise SealError from None
