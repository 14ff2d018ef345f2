"""Passwords and keys that popagent makes for itself: a file each under `<home>/credentials`, made once, reused."""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConfigurationError
from popagent_local.state import private_folder
from popagent_proto.matrix import SERVICES

ADMIN: Final = "admin"


def new_password() -> str:
    """Return 43 characters that need no quoting in URLs, SQL or nats.conf."""
    return secrets.token_urlsafe(32)


def new_key() -> str:
    """Return 32 random bytes in base64."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


class Credentials:
    """The folder of one home: 0700, its files 0600."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "credentials"

    def get(self, name: str, make: Callable[[], str] = new_password) -> str:
        """Return the value called `name`, made now when there is none."""
        path = private_folder(self.folder) / name
        if not path.exists():
            draft = path.with_name(f"{name}.{os.getpid()}.new")
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(make() + "\n")
            try:
                os.link(draft, path)  # unlike a rename, it never replaces what another process has just made
            except FileExistsError:
                pass  # the other process's value counts
            finally:
                draft.unlink()
        value = path.read_text(encoding="utf-8").strip()
        if not value:
            raise ConfigurationError(f"{path} is empty. Restore it from a backup, or delete it to have a new one made.")
        return value

    def superuser(self, cluster: str) -> str:
        """Return the superuser's password of an embedded cluster."""
        return self.get(f"postgres-{cluster}")

    def role(self, service: str) -> str:
        """Return the password of the service's PostgreSQL role."""
        return self.get(f"database-{service}")

    def nats(self) -> dict[str, str]:
        """Return the NATS passwords: every service's, and `admin`."""
        return {name: self.get(f"nats-{name}") for name in (ADMIN, *(row.name for row in SERVICES))}

    def secret_key(self) -> str:
        """Return the key that seals stored secrets: 32 bytes in base64."""
        return self.get("secret-key", new_key)

    def model_server_key(self) -> str:
        """Return the key of the embedded model server."""
        return self.get("model-server")
