"""What an operator may set about the suite as a whole; the services' own settings are theirs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, urlsplit

from pydantic import SecretStr

from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import Settings, default_workspace_root, layers, setting
from popagent_kit.shared_settings import (
    DoorSettings,
    ModelEndpointSettings,
    SecretKeySettings,
    TurnStopSettings,
    is_loopback,
)

TLS_MODES: Final = ("require", "verify-ca", "verify-full")


class LocalSettings(DoorSettings, ModelEndpointSettings, SecretKeySettings, TurnStopSettings):
    """Read once by `up` and by the commands that look at a running suite."""

    database_url: SecretStr | None = setting(
        "DATABASE_URL",
        None,
        description="Administrator's DSN of your own PostgreSQL (with pgvector) instead of the embedded one.",
        secret=True,
    )
    observability_database_url: SecretStr | None = setting(
        "OBSERVABILITY_DATABASE_URL",
        None,
        description="The same for spans and logs; never the application's database.",
        secret=True,
    )
    nats_url: SecretStr | None = setting(
        "NATS_URL", None, description="Your own NATS with JetStream instead of the embedded one.", secret=True
    )


class PlaceSettings(Settings):
    """Where things lie; read by the functions that find them, and declared here for the listing."""

    home: Path | None = setting(
        "POPAGENT_HOME",
        None,
        description="Folder of data and credentials; `.popagent` in a clone, else `popagent` in the XDG data folder.",
    )
    cache: Path | None = setting(
        "POPAGENT_CACHE",
        None,
        description="Folder of the weights, shared by every home; environment only, else `popagent` in the XDG cache.",
    )
    postgres_programs: Path | None = setting(
        "POPAGENT_PG_BIN",
        None,
        description="Folder with `initdb` and `postgres` to run instead of the package's; environment only.",
    )
    nats_program: Path | None = setting(
        "POPAGENT_NATS_BIN",
        None,
        description="The program `nats-server` to run instead of the package's; environment only.",
    )


def workspace_root(home: Path) -> Path:
    """Return the folder below which every workspace lies; `up` tells it to every service."""
    chosen = given("POPAGENT_WORKSPACE_ROOT")
    if chosen:
        return Path(chosen).expanduser().absolute()
    return default_workspace_root({"POPAGENT_HOME": str(home)})


def require_tls_abroad(variable: str, url: str) -> None:
    """Refuse a PostgreSQL or NATS on another machine without TLS.

    Raises:
        ConfigurationError: The message names `variable` and shows no password.
    """
    parts = urlsplit(url)
    if parts.hostname is None or is_loopback(parts.hostname):
        return
    if parts.scheme in {"tls", "wss"} or parse_qs(parts.query).get("sslmode", [""])[0] in TLS_MODES:
        return
    how = "use tls://" if parts.scheme == "nats" else "add ?sslmode=verify-full"
    raise ConfigurationError(f"{variable}: {parts.hostname} is another machine; {how}", field=variable)


def given(name: str, flags: Mapping[str, str] | None = None) -> str | None:
    """Return the value of a variable from the strongest source that sets it, or None."""
    for layer in layers(flags):
        if value := layer.values.get(name, ""):
            return value
    return None
