from __future__ import annotations

import base64
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from popagent_kit.sealing import SealError, decrypted, derived, encrypted, key_bytes, opened, public_half, sealed

KEY = bytes(range(32))


def test_a_box_opens_with_the_private_key_for_its_purpose() -> None:
    box = sealed(public_half(KEY), "sk-ünïque", "models")

    assert opened(KEY, box, "models") == "sk-ünïque"
    assert "sk-" not in box
    assert sealed(public_half(KEY), "sk-ünïque", "models") != box


def test_another_key_another_purpose_or_a_changed_byte_opens_nothing() -> None:
    box = sealed(public_half(KEY), "value", "models")
    data = base64.urlsafe_b64decode(box)
    changed = [base64.urlsafe_b64encode(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).decode() for at in (0, 40)]

    for key, text, purpose in [
        (bytes(32), box, "models"),
        (KEY, box, "other"),
        *((KEY, text, "models") for text in (*changed, "", "AAAA", "not base64!", box[:-8])),
    ]:
        with pytest.raises(SealError) as refused:
            opened(key, text, purpose)
        assert "value" not in repr(refused.value)


@pytest.mark.parametrize("public", ["", "AAAA", "?", base64.urlsafe_b64encode(bytes(32)).decode()])
def test_what_is_no_public_key_seals_nothing(public: str) -> None:
    with pytest.raises(SealError):
        sealed(public, "value", "models")


def test_ciphertext_is_bound_to_its_context() -> None:
    blob = encrypted(KEY, b"value", b"here")

    assert decrypted(KEY, blob, b"here") == b"value"
    for context, data in ((b"there", blob), (b"here", blob[:10])):
        with pytest.raises(SealError):
            decrypted(KEY, data, context)


def test_keys_are_derived_as_the_standard_says() -> None:
    expected = HKDF(SHA256(), 32, salt=None, info=b"a purpose").derive(KEY)

    assert derived(KEY, b"a purpose") == expected
    assert derived(KEY, b"another") != expected


def test_a_process_that_seals_nothing_does_not_load_the_library() -> None:
    code = (
        "import sys; from popagent_kit.sealing import derived, key_bytes; derived(bytes(32), b'x'); "
        "assert 'cryptography' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["", "short", base64.b64encode(bytes(31)).decode(), "é" * 44])
def test_a_key_is_32_bytes_in_base64(text: str) -> None:
    assert key_bytes(text) is None
    assert key_bytes(f" {base64.b64encode(KEY).decode()}\n") == KEY
