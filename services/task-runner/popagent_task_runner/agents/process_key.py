"""The key of this process: chat seals to it what a run must not carry in the open."""

from __future__ import annotations

import os

from pydantic import SecretStr

from popagent_kit import sealing
from popagent_kit.errors import DependencyError
from popagent_kit.sealing import KEY_BYTES, SealError
from popagent_proto.chat.runs import RUN_SECRET_PURPOSE


class ProcessKey:
    """Made at the start and kept nowhere; what was sealed to an earlier process cannot be opened."""

    def __init__(self) -> None:
        self._private = os.urandom(KEY_BYTES)
        self.public = sealing.public_half(self._private)

    def open(self, blob: bytes, resource: str, name: str) -> SecretStr:
        """Return what chat sealed for the run.

        Raises:
            DependencyError: It was sealed for another process or purpose.
        """
        try:
            return SecretStr(sealing.opened(self._private, blob.decode(), f"{RUN_SECRET_PURPOSE}/{resource}/{name}"))
        except (SealError, UnicodeDecodeError):
            raise DependencyError("What chat sealed for this run cannot be opened. It is asked again.") from None


def as_blob(box: str | None) -> str | None:
    """Return a box in the form in which runs hold what is sealed."""
    return None if box is None else box.encode().hex()
