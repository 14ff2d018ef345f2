"""The seven services as programs: one table says what each may know, and its environment holds nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from popagent_kit.settings import STARTED_BY_UP, layers, reveal
from popagent_local.credentials import Credentials
from popagent_local.infrastructure import Infrastructure
from popagent_local.programs import (
    DOOR_STOPS,
    SERVICE_STOP_S,
    SERVICES_STOP,
    STOP_MARGIN_S,
    Program,
    answers_ok,
    python_module,
    surroundings,
)
from popagent_local.settings import LocalSettings, given, workspace_root
from popagent_proto.matrix import BY_NAME

MODEL_SERVER: Final = "model-server"
MODEL_SERVER_KEY: Final = "POPAGENT_MODEL_SERVER_KEY"
GATEWAY: Final = "gateway"
CHAT: Final = "chat"
LIVES_TIMEOUT_S: Final = 5.0
# Reaches a program only when the table grants it: keys, passwords, and addresses that hold them.
GUARDED: Final = re.compile(r"(_KEY|_TOKEN|_SECRET|_PASSWORD|DATABASE_URL|NATS_URL|_MODEL_URL)$")


@dataclass(frozen=True)
class LocalService:
    """One row: which guarded variables the service gets beside its own database and bus login."""

    name: str
    needs: tuple[str, ...] = ()
    essential: bool = False
    nice: int = 0

    @property
    def health_variable(self) -> str:
        """The variable that names its loopback port for health and metrics."""
        return f"{BY_NAME[self.name].env_prefix}_HEALTH_PORT"


CHAT_NEEDS: Final = (
    "POPAGENT_MODEL_URL",
    "POPAGENT_MODEL_KEY",
    "POPAGENT_LOCAL_MODEL_URL",
    "POPAGENT_LOCAL_MODEL_KEY",
    "POPAGENT_SECRET_KEY",
)

LOCAL_SERVICES: Final = (
    LocalService(GATEWAY, needs=("POPAGENT_API_KEY",), essential=True),
    LocalService(CHAT, needs=CHAT_NEEDS, essential=True),
    LocalService("task-runner"),
    LocalService("scheduler"),
    LocalService("evolution-worker"),
    LocalService("docs-indexer", needs=("POPAGENT_EMBEDDING_API_KEY",)),
    # Watching must not slow what is watched.
    LocalService("observability", nice=10),
)


@dataclass(frozen=True)
class SuiteValues:
    """What `up` decided, for the environments of the services."""

    boot_id: str
    host: str
    port: int
    model_url: str | None
    model_key: str | None
    local_model_url: str | None
    local_model_key: str | None
    secret_key: str
    granted_s: Mapping[str, float]
    """Seconds that a service's own settings give to what is under way at a stop."""


def suite_values(
    settings: LocalSettings, credentials: Credentials, *, boot_id: str, port: int, model_port: int | None
) -> SuiteValues:
    """Combine settings with what this home made for itself; `model_port` is the embedded model server's, if it runs."""
    embedded = model_port is not None
    return SuiteValues(
        boot_id=boot_id,
        host=settings.host,
        port=port,
        model_url=settings.model_url,
        model_key=reveal(settings.model_key),
        local_model_url=f"http://127.0.0.1:{model_port}/v1" if embedded else None,
        local_model_key=credentials.model_server_key() if embedded else None,
        secret_key=reveal(settings.secret_key) or credentials.secret_key(),
        granted_s={CHAT: settings.stop_grace_s, GATEWAY: settings.drain_s},
    )


def tunables(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of ours that anybody may know, from wherever they are set."""
    found: dict[str, str] = {}
    for layer in reversed(layers(environ=environ)):
        found.update({name: value for name, value in layer.values.items() if value})
    return {
        name: value
        for name, value in found.items()
        if (name.startswith("POPAGENT_") or name in {"SEARXNG_URL"}) and not GUARDED.search(name)
    }


def environment(
    service: LocalService, values: SuiteValues, infrastructure: Infrastructure, health_port: int
) -> dict[str, str]:
    """Return the whole environment of the service's process."""
    row = BY_NAME[service.name]
    env = surroundings() | tunables()
    env |= {
        STARTED_BY_UP: values.boot_id,
        "POPAGENT_HOME": str(infrastructure.home),
        "POPAGENT_WORKSPACE_ROOT": str(workspace_root(infrastructure.home)),
        "PYTHONUNBUFFERED": "1",
        service.health_variable: str(health_port),
        f"{row.env_prefix}_DATABASE_URL": infrastructure.database_url(service.name),
        f"{row.env_prefix}_NATS_URL": infrastructure.nats_url(service.name),
    }
    decided = {
        "POPAGENT_MODEL_URL": values.model_url,
        "POPAGENT_MODEL_KEY": values.model_key,
        "POPAGENT_LOCAL_MODEL_URL": values.local_model_url,
        "POPAGENT_LOCAL_MODEL_KEY": values.local_model_key,
        "POPAGENT_SECRET_KEY": values.secret_key,
    }
    for name in service.needs:
        if value := decided[name] if name in decided else given(name):
            env[name] = value
    if service.name == GATEWAY:
        env |= {"POPAGENT_HOST": values.host, "POPAGENT_PORT": str(values.port)}
    return env


def service_program(
    service: LocalService, values: SuiteValues, infrastructure: Infrastructure, health_port: int
) -> Program:
    """Return the service as a program; it is ready when `/readyz` says so."""
    # What is under way gets its time, and the margin to be ended in words after it.
    granted_s = values.granted_s.get(service.name, 0.0)
    return Program(
        service.name,
        lambda: python_module(BY_NAME[service.name].package, nice=service.nice),
        answers_ok(health_port, "/readyz"),
        env=environment(service, values, infrastructure, health_port),
        port=health_port,
        essential=service.essential,
        lives=answers_ok(health_port, "/livez", LIVES_TIMEOUT_S),
        stop_order=DOOR_STOPS if service.name == GATEWAY else SERVICES_STOP,
        stop_timeout_s=max(SERVICE_STOP_S, granted_s + STOP_MARGIN_S),
    )


def service_programs(values: SuiteValues, infrastructure: Infrastructure, port: Callable[[str], int]) -> list[Program]:
    """Return all seven; `port(name)` gives a loopback port."""
    return [service_program(service, values, infrastructure, port(service.name)) for service in LOCAL_SERVICES]


def model_server_program(credentials: Credentials, port: int) -> Program:
    """Return the embedded model server; loading its weights takes a while, so that nothing waits for it."""
    return Program(
        MODEL_SERVER,
        lambda: python_module("popagent_local.model_server", "--port", str(port), "--api-key-env", MODEL_SERVER_KEY),
        answers_ok(port, "/health"),
        env=surroundings()
        | tunables()
        | {
            "PYTHONUNBUFFERED": "1",
            MODEL_SERVER_KEY: credentials.model_server_key(),
        },
        port=port,
        essential=False,
        stop_order=DOOR_STOPS,
        start_timeout_s=600.0,
        stop_timeout_s=10.0,
    )
