"""Settings that more than one program reads; each is declared here, once, so that all mean the same."""

from __future__ import annotations

import ipaddress
from typing import Final

from pydantic import SecretStr, field_validator

from popagent_kit.settings import Settings, reveal, setting
from popagent_kit.text import fits_a_header

# Longest that an operator may grant at a stop; whoever stops the suite from outside waits for longer than that.
LONGEST_TURN_GRACE_S: Final = 300.0
LONGEST_DOOR_DRAIN_S: Final = 60.0


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach `host`; of names, only localhost counts."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class DoorSettings(Settings):
    """Where the HTTP API listens, who may enter, how it closes."""

    host: str = setting("POPAGENT_HOST", "127.0.0.1", description="Address to listen on; any but loopback needs a key.")
    port: int = setting(
        "POPAGENT_PORT",
        8420,
        description="Port of the HTTP API; `popagent up` takes another and prints it when it is not free. 0 takes any.",
        ge=0,
        le=65_535,
    )
    api_key: SecretStr | None = setting(
        "POPAGENT_API_KEY",
        None,
        description="Key that every /api route wants in the header x-popagent-key; unset, none is wanted.",
        secret=True,
    )
    drain_s: float = setting(
        "POPAGENT_GATEWAY_DRAIN_S",
        5.0,
        description="Seconds that open requests get when the door closes.",
        gt=0,
        le=LONGEST_DOOR_DRAIN_S,
    )

    @field_validator("api_key")
    @classmethod
    def _key_fits_a_header(cls, key: SecretStr | None) -> SecretStr | None:
        text = reveal(key)
        if text is not None and not fits_a_header(text):
            raise ValueError("use printable ASCII without blanks at its ends; it travels in an HTTP header")
        return key


class ModelEndpointSettings(Settings):
    """The model server of the operator's own."""

    model_url: str | None = setting(
        "POPAGENT_MODEL_URL",
        None,
        description="Base URL of an OpenAI-compatible server, for example http://127.0.0.1:11434/v1;"
        " unset, the one saved in the page answers, else the embedded model.",
    )
    model_key: SecretStr | None = setting(
        "POPAGENT_MODEL_KEY", None, description="Key of the model server; sent as a bearer token.", secret=True
    )


class SecretKeySettings(Settings):
    """What stored secrets are sealed with; of the services, chat alone is given it."""

    secret_key: SecretStr | None = setting(
        "POPAGENT_SECRET_KEY",
        None,
        description="Seals stored secrets: 32 bytes in base64. Made by `up` when unset; keep a backup of it.",
        secret=True,
    )


class TurnStopSettings(Settings):
    """How turns end when the suite does."""

    stop_grace_s: float = setting(
        "POPAGENT_TURN_STOP_GRACE_S",
        30.0,
        description="Seconds that running turns get to finish when the service is told to stop.",
        ge=0,
        le=LONGEST_TURN_GRACE_S,
    )
