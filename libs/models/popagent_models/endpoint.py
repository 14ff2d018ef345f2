"""The address of the model server."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from popagent_models.errors import NOT_CONNECTED, ModelConfigurationError
from popagent_telemetry.redaction import register_secret
from popagent_web.addresses import gives_credentials, spelled

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LONGEST_NAME: Final = 253


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
        name = _looked_up(urlsplit(self.url).hostname or "")
        found = spelled(name)
        if found is None:
            return name == "localhost" or name.endswith(".localhost")
        # Who connects to the address of all interfaces arrives at this machine.
        return found.is_loopback or found.is_unspecified


class AddressError(ValueError):
    """What was typed is not an address of a model server; the message goes on after the name of the field."""


class CredentialsError(AddressError):
    """It holds a name or a password, which belong elsewhere."""


def address(url: str) -> str:
    """Return the base URL of what a person typed: `/v1` is added to a bare host, `/chat/completions` taken off.

    Raises:
        CredentialsError: It holds a name or a password.
        AddressError: It is not an http(s) URL, or its host cannot be one.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise AddressError("is not an http or https URL.")
    if "@" in parts.netloc:
        raise CredentialsError("must not hold a user name or password.")
    if not _can_be_a_host(parts.hostname or ""):
        raise AddressError("has no host that can exist. Check the spelling.")
    found = spelled(_looked_up(parts.hostname or ""))
    if found is not None and gives_credentials(str(found)):
        raise AddressError("is an address where clouds give credentials, and no model server is asked there.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", ""))


def _looked_up(host: str) -> str:
    """Return the name as the system looks it up: look-alikes are what they stand for, the last dot is the root's."""
    return unicodedata.normalize("NFKC", host).lower().removesuffix(".")


def _can_be_a_host(host: str) -> bool:
    name = _looked_up(host)
    if ":" in name:  # an address in brackets; urlsplit has read it
        return True
    try:
        return 0 < len(name.encode("idna")) <= LONGEST_NAME
    except UnicodeError:  # a label that is empty, too long, or of characters that no name has
        return False


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
        advice = " Put the key into POPAGENT_MODEL_KEY." if isinstance(error, CredentialsError) else ""
        raise ModelConfigurationError(f"POPAGENT_MODEL_URL {error}{advice}") from error
    register_secret(key, "POPAGENT_MODEL_KEY")
    return Endpoint(base, key or None)


def same_server(one: str, other: str) -> bool:
    """Tell whether both URLs lead to the same scheme, host and port: a key of one may be sent to the other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or DEFAULT_PORTS.get(parts.scheme)
