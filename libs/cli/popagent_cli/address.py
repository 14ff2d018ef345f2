"""Where popagent is and which key it wants: a flag, the suite that runs on this machine, else the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import click

from popagent_cli.errors import CliError
from popagent_kit.settings import clone_root, command, home_folder
from popagent_kit.text import fits_a_header
from popagent_local.settings import given
from popagent_local.state import SuiteState, is_held

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = "8420"
WILDCARDS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (replaced, not bound)


@dataclass(frozen=True)
class Address:
    """`phase` is that of the suite on this machine, empty when the address comes from elsewhere."""

    url: str
    key: str | None
    phase: str = ""
    named: bool = False
    """The caller gave the URL."""

    @property
    def is_loopback(self) -> bool:
        """Only this machine can be meant."""
        return urlsplit(self.url).hostname in {"127.0.0.1", "::1", "localhost"}


def find_address(url: str | None) -> Address:
    """Return the address to use; nothing is asked over the network.

    Raises:
        click.BadParameter: `url` is no http or https address.
        ConfigurationError: A `.env` file cannot be read.
    """
    key = _checked_key(given("POPAGENT_API_KEY"))
    if url is not None:
        return Address(_checked(url), key, named=True)
    home = home_folder()
    state = SuiteState.read(home) if is_held(home) else None
    if state is not None and state.address:
        return Address(state.address, key, state.phase)
    host = (given("POPAGENT_HOST") or DEFAULT_HOST).strip("[]")
    host = WILDCARDS.get(host, host)
    port = given("POPAGENT_PORT") or DEFAULT_PORT
    return Address(f"http://{f'[{host}]' if ':' in host else host}:{port}", key, state.phase if state else "")


def _checked(url: str) -> str:
    parts = urlsplit(url)
    try:
        well_formed = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        well_formed = False
    if not well_formed or parts.path.strip("/") or parts.query:
        raise click.BadParameter(f"{url!r} should look like http://127.0.0.1:8420", param_hint="--url")
    return url.rstrip("/")


def _checked_key(key: str | None) -> str | None:
    if key is not None and not fits_a_header(key):
        raise CliError("POPAGENT_API_KEY is no key: it is printable ASCII, without blanks at its ends.")
    return key


def how_to_start() -> str:
    """Say how popagent is started here."""
    return f"Start it with {'`make up` or ' if clone_root() else ''}`{command('up')}`."
