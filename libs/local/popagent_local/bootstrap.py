"""What must exist before a service starts: roles, schemas, migrations, streams. Each step can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from popagent_bus.streams import connect_admin, declare, keep_streams
from popagent_db.bootstrap import bootstrap, bootstrap_sql, database_of
from popagent_db.migrate import migrate
from popagent_db.pool import connect
from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import command
from popagent_local.infrastructure import CLUSTERS, DATABASE, Infrastructure, resolve, services_of
from popagent_local.programs import together
from popagent_local.settings import LocalSettings
from popagent_local.state import holder, is_held
from popagent_proto.matrix import SERVICES, nats_authorization


@dataclass(frozen=True)
class Prepared:
    """What was done, for the report of `up`, `bootstrap` and `migrate`."""

    migrations: Sequence[str] = ()
    missing_extensions: Sequence[str] = ()


async def make_roles(infrastructure: Infrastructure) -> Prepared:
    """Make roles, schemas and extensions wherever an administrator's DSN is known."""
    reports = await together(
        *(
            bootstrap(dsn, services_of(cluster), infrastructure.role_passwords(cluster))
            for cluster, dsn in infrastructure.admin_dsns.items()
        )
    )
    return Prepared(missing_extensions=sorted({name for report in reports for name in report.missing_extensions}))


async def run_migrations(infrastructure: Infrastructure) -> Prepared:
    """Bring every service's schema up to date, each as its own role."""
    applied = await together(*(migrate(infrastructure.database_url(row.name), row.name) for row in SERVICES))
    return Prepared(migrations=[name for names in applied for name in names])


async def make_streams(infrastructure: Infrastructure) -> None:
    """Declare streams and consumers as NATS's administrator."""
    address, user, password = infrastructure.nats_admin()
    await declare(address, user, password)


async def guard_streams(infrastructure: Infrastructure) -> None:
    """Make them again whenever one is gone, a wiped NATS included; ends by cancellation."""
    address, user, password = infrastructure.nats_admin()
    await keep_streams(address, user, password)


async def prepare(infrastructure: Infrastructure) -> Prepared:
    """Do all of it."""

    async def databases() -> Prepared:
        roles = await make_roles(infrastructure)
        migrations = await run_migrations(infrastructure)
        return Prepared(migrations.migrations, roles.missing_extensions)

    async def streams() -> Prepared:
        await make_streams(infrastructure)
        return Prepared()

    done, _ = await together(databases(), streams())
    return done


def reachable_infrastructure(home: Path, settings: LocalSettings) -> Infrastructure:
    """Return where the servers are for a command that starts none.

    Raises:
        ConfigurationError: They are embedded, and `popagent up` does not run.
    """
    state = holder(home) if is_held(home) else None

    def port(name: str) -> int:
        if state is None or name not in state.ports:
            raise ConfigurationError(
                f"The embedded servers do not run. Start them with `{command('up')}`, which does this step by itself;"
                " or set DATABASE_URL, OBSERVABILITY_DATABASE_URL and NATS_URL to use servers of your own."
            )
        return state.ports[name]

    return resolve(home, settings, port)


def described_infrastructure(home: Path, settings: LocalSettings) -> Infrastructure:
    """Return the infrastructure to look at; an embedded server that does not run has port 0."""
    state = holder(home) if is_held(home) else None
    return resolve(home, settings, lambda name: state.ports.get(name, 0) if state else 0)


async def check_database(dsn: str) -> str:
    """Log in and return the server's version.

    Raises:
        AppError: It does not let us in, or does not answer.
    """
    connection = await connect(dsn)
    try:
        version = await connection.fetchval("show server_version")
    finally:
        await connection.close()
    return f"PostgreSQL {version}"


async def check_bus(address: str, user: str, password: str) -> str:
    """Log in as administrator and return what JetStream holds.

    Raises:
        AppError: It does not let us in, or does not answer.
    """
    client = await connect_admin(address, user, password)
    try:
        info = await client.jetstream().account_info()
    finally:
        await client.close()
    return f"NATS, {info.streams} streams"


def script(infrastructure: Infrastructure) -> str:
    """Return what an administrator of external servers has to run: SQL, then the block for nats.conf."""
    parts = []
    for cluster in CLUSTERS:
        dsn = infrastructure.admin_dsns.get(cluster)
        database = database_of(dsn) if dsn else DATABASE
        parts.append(f"-- PostgreSQL, {cluster}\n{bootstrap_sql(services_of(cluster), database)}")
    parts.append(f"# NATS: into nats.conf\n{nats_authorization(infrastructure.credentials.nats())}")
    return "\n".join(parts)
