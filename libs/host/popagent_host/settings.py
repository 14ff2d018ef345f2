"""Settings that every service has; `<SERVICE>` in a name stands for the service, TASK_RUNNER for example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, Self
from uuid import UUID

from pydantic import SecretStr

from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import STARTED_BY_UP, Settings, setting
from popagent_proto.matrix import BY_NAME

PLACEHOLDER = "<SERVICE>"


class ServiceSettings(Settings):
    """Base of a service's settings; `for_service(name).load()` reads them."""

    service: ClassVar[str] = ""

    database_url: SecretStr | None = setting(
        "POPAGENT_<SERVICE>_DATABASE_URL",
        None,
        description="DSN of the service's own role; `popagent up` derives it from DATABASE_URL.",
        secret=True,
    )
    nats_url: SecretStr | None = setting(
        "POPAGENT_<SERVICE>_NATS_URL",
        None,
        description="NATS with the service's own user and password; `popagent up` derives it from NATS_URL.",
        secret=True,
    )
    health_port: int = setting(
        "POPAGENT_<SERVICE>_HEALTH_PORT",
        0,
        description="Loopback port for /livez, /readyz and /metrics; 0 takes a free one and logs it.",
        ge=0,
        le=65_535,
    )
    pool_size: int = setting(
        "POPAGENT_<SERVICE>_POOL_SIZE", 8, description="Most PostgreSQL connections of one process.", ge=1, le=100
    )
    boot_id: UUID | None = setting(
        STARTED_BY_UP,
        None,
        description="Start of the whole suite, so that a restart is told from a crash of one service.",
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "POPAGENT_LOG_LEVEL", "INFO", description="Least severe log records that are written."
    )
    log_format: Literal["plain", "json"] = setting(
        "POPAGENT_LOG_FORMAT", "plain", description="Log lines for a terminal (plain) or for machines (json)."
    )

    @classmethod
    def for_service(cls, name: str) -> type[Self]:
        """Return the class that reads the variables of the service `name`."""
        return type(cls.__name__, (cls,), {"service": name, "__module__": cls.__module__})

    @classmethod
    def declared(cls) -> Iterator[tuple[str, str, bool]]:
        """Yield (field name, environment variable, is secret), the service's name filled in."""
        own = BY_NAME[cls.service].schema.upper() if cls.service else PLACEHOLDER
        for name, env, secret in super().declared():
            yield name, env.replace(PLACEHOLDER, own), secret

    def required(self, field: str) -> str:
        """Return the text of `database_url` or `nats_url`.

        Raises:
            ConfigurationError: It is not set; the message names the variable.
        """
        value: SecretStr | None = getattr(self, field)
        if value is not None:
            return value.get_secret_value()
        variable = {name: env for name, env, _ in self.declared()}[field]
        raise ConfigurationError(
            f"{variable} is not set. `popagent up` sets it for every service; to run one alone, set it yourself.",
            field=variable,
        )
