"""The address of the model server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from popagent_models.errors import ModelConfigurationError
from popagent_telemetry.redaction import register_secret


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


def endpoint(url: str | None, key: str | None = None) -> Endpoint:
    """Return the endpoint of what a person typed: `/v1` is added to a bare host, `/chat/completions` taken off.

    Raises:
        ModelConfigurationError: Nothing is set, or it is not an http(s) URL.
    """
    if not url:
        raise ModelConfigurationError("No model is connected. Set POPAGENT_MODEL_URL to an OpenAI-compatible server.")
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ModelConfigurationError("POPAGENT_MODEL_URL is not an http or https URL.")
    if parts.username or parts.password:
        raise ModelConfigurationError(
            "POPAGENT_MODEL_URL must not hold a password. Put the key into POPAGENT_MODEL_KEY."
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/models")
    register_secret(key, "POPAGENT_MODEL_KEY")
    return Endpoint(urlunsplit((parts.scheme, parts.netloc, path or "/v1", "", "")), key or None)
