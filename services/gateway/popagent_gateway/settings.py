"""What an operator may set about the door."""

from __future__ import annotations

from typing import Final, Self
from urllib.parse import urlsplit

from pydantic import field_validator, model_validator

from popagent_host import ServiceSettings
from popagent_kit.settings import setting
from popagent_kit.shared_settings import DoorSettings, is_loopback

WILDCARDS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (recognised, not bound)


class GatewaySettings(DoorSettings, ServiceSettings):
    """Where the door listens, who may enter, and how long its log of changes is kept."""

    public_url: str | None = setting(
        "POPAGENT_PUBLIC_URL",
        None,
        description="Address that browsers use when a proxy stands before the door; feeds the Host and Origin checks.",
    )
    audit_days: int = setting(
        "POPAGENT_AUDIT_DAYS", 90, description="Days that the log of changes is kept.", ge=1, le=3_650
    )

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
