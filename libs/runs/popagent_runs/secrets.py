"""How a run opens what is sealed: the key of a model, the secret of a hook."""

from __future__ import annotations

from typing import Protocol

from pydantic import SecretStr


class SecretsPort(Protocol):
    """Opens sealed values; each service holds them in its own way."""

    def open(self, blob: bytes, resource: str, name: str) -> SecretStr:
        """Return the value of the row (`resource`, `name`).

        Raises:
            AppError: It cannot be opened; the message says what to do.
        """
        ...
