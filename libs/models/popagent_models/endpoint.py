"""The address of the model server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from popagent_models.errors import NOT_CONNECTED, ModelConfigurationError
from popagent_telemetry.redaction import register_secret

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Base URL (ending in the API's root, usually /v1) and key; build it with `endpoint`."""

    url: str
    key: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """Host and port, as shown to people."""
        return urlsplit(self.url).netloc

    @property
    def is_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        name = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost" or name.endswith(".localhost")


class AddressError(ValueError):
    """What was typed is not an address of a model server; the message goes on after the name of the field."""


def address(url: str) -> str:
    """Return the base URL of what a person typed: `/v1` is added to a bare host, `/chat/completions` taken off.

    Raises:
        AddressError: It is not an http(s) URL, or it holds a password.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise AddressError("is not an http or https URL.")
    if parts.username or parts.password:
        raise AddressError("must not hold a password.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", ""))


def endpoint(url: str | None, key: str | None = None) -> Endpoint:
    """Return the endpoint that the environment names.

    Raises:
        ModelConfigurationError: Nothing is set, or it is not an http(s) URL.
    """
    if not url:
        raise ModelConfigurationError(NOT_CONNECTED)
    try:
        base = address(url)
    except AddressError as error:
        advice = " Put the key into POPAGENT_MODEL_KEY." if "password" in str(error) else ""
        raise ModelConfigurationError(f"POPAGENT_MODEL_URL {error}{advice}") from error
    register_secret(key, "POPAGENT_MODEL_KEY")
    return Endpoint(base, key or None)


def same_server(one: str, other: str) -> bool:
    """Tell whether both URLs lead to the same scheme, host and port: a key of one may be sent to the other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)
