"""What an operator may set about the door."""

from __future__ import annotations

import ipaddress
from typing import Final, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator

from popagent_host import ServiceSettings
from popagent_kit.settings import reveal, setting

WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (recognised, not bound)


def is_loopback(host: str) -> bool:
    """Tell whether `host` can be reached from this machine only; a name other than localhost counts as open."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class GatewaySettings(ServiceSettings):
    """Where the door listens, who may enter, and how long its log of changes is kept."""

    host: str = setting("POPAGENT_HOST", "127.0.0.1", description="Address to listen on; any but loopback needs a key.")
    port: int = setting("POPAGENT_PORT", 8420, description="Port of the HTTP API; 0 takes a free one.", ge=0, le=65_535)
    api_key: SecretStr | None = setting(
        "POPAGENT_API_KEY",
        None,
        description="Key that every /api route wants in the header x-popagent-key; unset, none is wanted.",
        secret=True,
    )
    public_url: str | None = setting(
        "POPAGENT_PUBLIC_URL",
        None,
        description="Address that browsers use when a proxy stands before the door; feeds the Host and Origin checks.",
    )
    audit_days: int = setting(
        "POPAGENT_AUDIT_DAYS", 90, description="Days that the log of changes is kept.", ge=1, le=3_650
    )
    drain_s: float = setting(
        "POPAGENT_GATEWAY_DRAIN_S", 5.0, description="Seconds that open requests get when the door closes.", gt=0, le=60
    )

    @field_validator("api_key")
    @classmethod
    def _key_fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        text = reveal(key)
        if text is not None and not (text.isascii() and text.isprintable() and text == text.strip()):
            raise ValueError("use printable ASCII without blanks at its ends; it travels in an HTTP header")
        return key

    @field_validator("public_url")
    @classmethod
    def _public_url_is_an_origin(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.path not in {"", "/"} or parts.query:
            raise ValueError("must look like https://popagent.example.org, without a path")
        return f"{parts.scheme}://{parts.netloc}".lower()

    @model_validator(mode="after")
    def _an_open_door_has_a_key(self) -> Self:
        if self.api_key is None and not is_loopback(self.host):
            raise ValueError(
                f"POPAGENT_HOST={self.host} can be reached by other machines: "
                "set POPAGENT_API_KEY, or listen on 127.0.0.1"
            )
        return self
