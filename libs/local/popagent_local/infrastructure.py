"""Where the databases and the bus are: the user's own when given, else embedded; and who logs in how."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import reveal
from popagent_local.credentials import ADMIN, Credentials
from popagent_local.nats import EmbeddedNats
from popagent_local.ports import free_port
from popagent_local.postgres import EmbeddedPostgres
from popagent_local.programs import (
    BUS_STOP_S,
    BUS_STOPS,
    DATABASE_STOP_S,
    DATABASES_STOP,
    Program,
    surroundings,
)
from popagent_local.settings import LocalSettings, given, require_tls_abroad
from popagent_models import well_known
from popagent_proto.matrix import ADMIN_USER, BY_NAME, SERVICES, Cluster, nats_authorization

CLUSTERS: Final[tuple[Cluster, ...]] = ("application", "observability")
PROGRAM_NAMES: Final[dict[Cluster, str]] = {"application": "postgres", "observability": "postgres-traces"}
CLUSTER_VARIABLES: Final[dict[Cluster, str]] = {
    "application": "DATABASE_URL",
    "observability": "OBSERVABILITY_DATABASE_URL",
}
NATS: Final = "nats"
DATABASE: Final = "popagent"
# Traces come in batches and are few; the application's server keeps the default.
OBSERVABILITY_SETTINGS: Final = {"shared_buffers": "64MB", "max_connections": "40"}


@dataclass
class Ports:
    """Loopback ports by name, the same as last time where they are still free."""

    remembered: dict[str, int] = field(default_factory=dict)

    def take(self, name: str) -> int:
        """Return the port called `name`."""
        others = [port for other, port in self.remembered.items() if other != name]
        # Who looks for model servers at their usual ports must not find one of ours.
        others += well_known.PORTS
        self.remembered[name] = free_port(self.remembered.get(name), avoid=others)
        return self.remembered[name]


def services_of(cluster: Cluster) -> list[str]:
    """Return the services whose schema lies in `cluster`."""
    return [row.name for row in SERVICES if row.cluster == cluster]


@dataclass
class Infrastructure:
    """Every address, resolved; an embedded server stands in `postgres` or `nats`."""

    home: Path
    credentials: Credentials
    postgres: dict[Cluster, EmbeddedPostgres] = field(default_factory=dict)
    admin_dsns: dict[Cluster, str] = field(default_factory=dict)
    nats: EmbeddedNats | None = None
    nats_address: str = ""

    def database_url(self, service: str) -> str:
        """Return the DSN of the service's own role.

        Raises:
            ConfigurationError: Neither the service's nor an administrator's DSN is known.
        """
        row = BY_NAME[service]
        variable = f"{row.env_prefix}_DATABASE_URL"
        if own := given(variable):
            require_tls_abroad(variable, own)
            return own
        if (admin := self.admin_dsns.get(row.cluster)) is None:
            raise ConfigurationError(f"set {variable}, or {CLUSTER_VARIABLES[row.cluster]}", field=variable)
        return with_login(admin, row.role, self.credentials.role(service))

    def nats_url(self, service: str) -> str:
        """Return the NATS URL with the service's user and password."""
        row = BY_NAME[service]
        variable = f"{row.env_prefix}_NATS_URL"
        if own := given(variable):
            require_tls_abroad(variable, own)
            return own
        return with_login(self.nats_address, row.role, self.credentials.nats()[service])

    def nats_admin(self) -> tuple[str, str, str]:
        """Return address, user and password of who may make streams."""
        parts = urlsplit(self.nats_address)
        if parts.username:
            return without_login(self.nats_address), parts.username, parts.password or ""
        return self.nats_address, ADMIN_USER, self.credentials.nats()[ADMIN]

    def role_passwords(self, cluster: Cluster) -> dict[str, str]:
        """Return the passwords that bootstrap gives to roles: not of those that come with a DSN of their own."""
        own = [name for name in services_of(cluster) if not given(f"{BY_NAME[name].env_prefix}_DATABASE_URL")]
        return {name: self.credentials.role(name) for name in own}

    def programs(self) -> list[Program]:
        """Return the embedded servers."""
        programs = [
            Program(
                PROGRAM_NAMES[cluster],
                server.start_command,
                server.ready,
                env=surroundings(),
                port=server.port,
                stop_order=DATABASES_STOP,
                stop_signal=server.stop_signal,
                kill_signal=server.kill_signal,
                stop_timeout_s=DATABASE_STOP_S,
                quiet=True,
            )
            for cluster, server in self.postgres.items()
        ]
        if self.nats is not None:
            programs.append(
                Program(
                    NATS,
                    self.nats.start_command,
                    self.nats.ready,
                    env=surroundings(),
                    port=self.nats.port,
                    stop_order=BUS_STOPS,
                    stop_signal=signal.SIGTERM,
                    stop_timeout_s=BUS_STOP_S,
                    quiet=True,
                )
            )
        return programs


def with_login(url: str, user: str, password: str) -> str:
    """Return `url` with another user; the password needs no quoting."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{user}:{password}@{parts.netloc.rpartition('@')[2]}"))


def without_login(url: str) -> str:
    """Return `url` without user and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def resolve(home: Path, settings: LocalSettings, port: Callable[[str], int]) -> Infrastructure:
    """Decide what is embedded and where everything listens; `port(name)` gives a loopback port.

    Raises:
        ConfigurationError: A given server is on another machine without TLS, or the two databases are the same.
    """
    found = Infrastructure(home, Credentials(home))
    urls: dict[Cluster, str | None] = {
        "application": reveal(settings.database_url),
        "observability": reveal(settings.observability_database_url),
    }
    if urls["application"] and urls["application"] == urls["observability"]:
        raise ConfigurationError("OBSERVABILITY_DATABASE_URL must not be the application's database")
    for cluster, url in urls.items():
        if url:
            require_tls_abroad(CLUSTER_VARIABLES[cluster], url)
            found.admin_dsns[cluster] = url
        elif not _all_given(f"{BY_NAME[name].env_prefix}_DATABASE_URL" for name in services_of(cluster)):
            server = EmbeddedPostgres(
                home / PROGRAM_NAMES[cluster],
                port(PROGRAM_NAMES[cluster]),
                found.credentials.superuser(cluster),
                settings=OBSERVABILITY_SETTINGS if cluster == "observability" else {},
            )
            found.postgres[cluster] = server
            found.admin_dsns[cluster] = server.dsn(DATABASE)
    if address := reveal(settings.nats_url):
        require_tls_abroad("NATS_URL", address)
        found.nats_address = address
    else:
        found.nats = EmbeddedNats(home / NATS, port(NATS), nats_authorization(found.credentials.nats()))
        found.nats_address = found.nats.url
    return found


def _all_given(variables: Iterable[str]) -> bool:
    return all(given(variable) for variable in variables)
