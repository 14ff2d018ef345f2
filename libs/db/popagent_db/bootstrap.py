"""Roles, schemas and extensions, made by an administrator: each service is confined to the schema it owns."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import os
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg

from popagent_db.pool import connect, translated
from popagent_db.query import Query
from popagent_kit.errors import ConfigurationError, UnavailableError
from popagent_proto.matrix import BY_NAME, ServiceRow

log = logging.getLogger(__name__)

EXTENSIONS: Final = {
    "vector": "docs-indexer needs it; install pgvector on this server",
    "pg_trgm": "text search by likeness will not work",
    "unaccent": "text search will tell accents apart",
    "btree_gin": "text search within a workspace will be slower",
}
STATEMENT_TIMEOUT_S: Final = 30
LOCK_TIMEOUT_S: Final = 10
SCRAM_ITERATIONS: Final = 4096
ATTEMPTS: Final = 8
NAME: Final = re.compile(r"\A[a-z_][a-z0-9_]{0,62}\Z")
LOCK_SQL: Final = "select pg_advisory_xact_lock(1886351362)"

MISSING_EXTENSIONS: Final = Query(
    str, "select name from unnest($1::text[]) as wanted (name) where name not in (select extname from pg_extension)"
)
OVERMIGHTY: Final = Query(
    str,
    """
    select rolname::text
    from pg_roles
    where rolname = any($1::text[])
      and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls
           or exists (select 1 from pg_auth_members where member = pg_roles.oid))
    """,
)


@dataclass(frozen=True)
class BootstrapReport:
    """What the administrator should know: extensions that this server does not have."""

    database: str
    missing_extensions: tuple[str, ...]


def database_of(dsn: str) -> str:
    """Return the database that `dsn` names; without one, the user's name, as PostgreSQL does."""
    parts = urlsplit(dsn)
    return unquote(parts.path.lstrip("/")) or unquote(parts.username or "") or "postgres"


def role_dsn(admin_dsn: str, service: str, password: str) -> str:
    """Return the DSN of a service's role on the server and database of `admin_dsn`; the password is URL-safe."""
    parts = urlsplit(admin_dsn)
    address = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{BY_NAME[service].role}:{password}@{address}"))


async def bootstrap(admin_dsn: str, services: Sequence[str], passwords: Mapping[str, str]) -> BootstrapReport:
    """Make or repair everything in the database that `admin_dsn` names, creating it when it is missing.

    May be repeated and run by several at once. A service without a password in `passwords` keeps the one it has.

    Raises:
        ConfigurationError: The administrator may not do this, or a service's role has rights it must not have.
        UnavailableError: PostgreSQL does not answer.
    """
    rows = [BY_NAME[service] for service in services]
    database = database_of(admin_dsn)
    secrets = {
        row.role: _literal(scram_verifier(passwords[row.name])) if row.name in passwords else None for row in rows
    }
    statements = bootstrap_statements(rows, database, secrets.get)
    await _create_database(admin_dsn, database)
    connection = await connect(admin_dsn)
    try:
        async with translated(connection):
            await _run_together(connection, statements)
            mighty = [str(name) for name in await OVERMIGHTY.all(connection, [row.role for row in rows])]
            missing = tuple(await MISSING_EXTENSIONS.all(connection, list(EXTENSIONS)))
    except asyncpg.InsufficientPrivilegeError as error:
        raise ConfigurationError(f"bootstrap needs an administrator's DSN: {error}") from error
    finally:
        await connection.close(timeout=5)
    if mighty:
        raise ConfigurationError(
            f"these roles have rights or memberships that would break ownership: {mighty}; take them away"
            " (`alter role … nosuperuser nocreatedb nocreaterole`, `revoke … from …`), or drop roles that are not ours"
        )
    for name in missing:
        log.warning("PostgreSQL has no extension %s: %s", name, EXTENSIONS[name])
    return BootstrapReport(database, missing)


def bootstrap_sql(services: Sequence[str], database: str) -> str:
    """Return what `bootstrap` runs, as a psql script for an administrator to read first.

    Passwords are psql variables, one a role, set by a second script that only its owner can read: on a command line,
    every user of the machine would see them.
    """
    rows = [BY_NAME[service] for service in services]
    statements = bootstrap_statements(rows, database, lambda role: f":'{role}_password'")
    head = [
        "-- popagent: roles, schemas and extensions. May be run again at any time.",
        "-- Passwords are kept off the command line, where every user of the machine could read them.",
        "-- Write them first, in a file of your own (umask 077; nano passwords.psql), letters and digits only:",
        *(f"--   \\set {row.role}_password '...'" for row in rows),
        f"-- Then, as an administrator, with your own login in ~/.pgpass, in the database {database}:",
        "--   psql -v ON_ERROR_STOP=1 -f passwords.psql -f this-script.sql",
        "set password_encryption = 'scram-sha-256';",
    ]
    return "\n".join([*head, "begin;", *(f"{statement};" for statement in statements), "commit;", ""])


def bootstrap_statements(rows: Sequence[ServiceRow], database: str, secret: Callable[[str], str | None]) -> list[str]:
    """Return the statements of one transaction; `secret(role)` is a quoted literal, or None to leave it."""
    roles = ", ".join(_name(row.role) for row in rows)
    statements = [LOCK_SQL]
    for row in rows:
        statements += _role_statements(row, secret(row.role))
    statements += [
        f"revoke all on database {_identifier(database)} from public",
        f"grant connect on database {_identifier(database)} to {roles}",
        "revoke all on schema public from public",
        "create schema if not exists ext",
        "revoke all on schema ext from public",
        f"grant usage on schema ext to {roles}",
    ]
    statements += [_extension_statement(name) for name in EXTENSIONS]
    for row in rows:
        statements += _schema_statements(row)
    return statements


def _role_statements(row: ServiceRow, secret: str | None) -> list[str]:
    role = _name(row.role)
    return [
        f"do $do$ begin\n"  # noqa: S608 (every name went through _name)
        f"  if not exists (select 1 from pg_roles where rolname = '{role}') then create role {role}; end if;\n"
        f"end $do$",
        f"alter role {role} with login" + (f" password {secret}" if secret else ""),
        # On the role, not "in database": that would be lost in a copy made from a template.
        f"alter role {role} set search_path = {_name(row.schema)}, ext",
        f"alter role {role} set statement_timeout = '{STATEMENT_TIMEOUT_S}s'",
        f"alter role {role} set idle_in_transaction_session_timeout = '{STATEMENT_TIMEOUT_S}s'",
        f"alter role {role} set lock_timeout = '{LOCK_TIMEOUT_S}s'",
    ]


def _schema_statements(row: ServiceRow) -> list[str]:
    role, schema = _name(row.role), _name(row.schema)
    return [
        # A managed server's administrator is no superuser, and must belong to a role to give it a schema.
        f"do $do$ begin\n"
        f"  if not pg_has_role(current_user, '{role}', 'set') then grant {role} to current_user; end if;\n"
        f"end $do$",
        f"create schema if not exists {schema} authorization {role}",
        f"alter schema {schema} owner to {role}",
        f"revoke all on schema {schema} from public",
    ]


def _extension_statement(name: str) -> str:
    return (
        f"do $do$ begin\n"  # noqa: S608 (every name went through _name)
        f"  if exists (select 1 from pg_available_extensions where name = '{_name(name)}') then\n"
        f"    create extension if not exists {name} schema ext;\n"
        f"    if exists (select 1 from pg_extension where extname = '{name}' and extnamespace <> 'ext'::regnamespace)\n"
        f"    then alter extension {name} set schema ext; end if;\n"
        f"  else raise warning 'extension {name} is not available: {EXTENSIONS[name]}'; end if;\n"
        # On a managed server, an extension that only the provider may create is missing, and the rest still works.
        f"exception when insufficient_privilege then\n"
        f"  raise warning 'extension {name} may not be created: {EXTENSIONS[name]}';\n"
        f"end $do$"
    )


def scram_verifier(password: str) -> str:
    """Return what PostgreSQL stores for `password` (RFC 5803), so that the password itself is never sent or logged."""
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, SCRAM_ITERATIONS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    salt_text, stored_text, server_text = (base64.b64encode(part).decode() for part in (salt, stored, server))
    return f"SCRAM-SHA-256${SCRAM_ITERATIONS}:{salt_text}${stored_text}:{server_text}"


async def _create_database(admin_dsn: str, database: str) -> None:
    try:
        await (await connect(admin_dsn)).close()
    except ConfigurationError as error:
        if not isinstance(error.__cause__, asyncpg.InvalidCatalogNameError):
            raise
    else:
        return
    maintenance = await connect(urlunsplit(urlsplit(admin_dsn)._replace(path="/postgres")))
    try:
        await maintenance.execute(f"create database {_identifier(database)} template template0")
    except (asyncpg.DuplicateDatabaseError, asyncpg.UniqueViolationError):
        log.info("another bootstrap created the database", extra={"database": database})
    finally:
        await maintenance.close(timeout=5)


async def _run_together(connection: asyncpg.Connection[asyncpg.Record], statements: Sequence[str]) -> None:
    """Run the statements in one transaction.

    Roles belong to the whole server and the lock only to one database, so a bootstrap of another database
    can still collide: that is an error of the server's catalogue, after which everything is tried again.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            async with connection.transaction():
                for statement in statements:
                    await connection.execute(statement)
        except (asyncpg.UniqueViolationError, asyncpg.DuplicateObjectError, asyncpg.InternalServerError) as error:
            log.info("bootstrap collided with another one", extra={"reason": str(error), "attempt": attempt})
            await asyncio.sleep(random.uniform(0.02, 0.1) * attempt)  # noqa: S311 (spreads retries, guards nothing)
        else:
            return
    raise UnavailableError("Other bootstraps of this server kept colliding with this one; run it again.")


def _name(text: str) -> str:
    if NAME.match(text) is None:
        raise ConfigurationError(f"not a name for a role, schema or extension: {text!r}")
    return text


def _identifier(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
