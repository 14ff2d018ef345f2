"""`popagent provision`: what servers and services that nobody supervises must be given, in containers for example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConfigurationError
from popagent_kit.settings import reveal
from popagent_local import default_workspace
from popagent_local.infrastructure import NATS, Infrastructure, resolve
from popagent_local.nats import configuration
from popagent_local.services import LOCAL_SERVICES, LocalService
from popagent_local.settings import LocalSettings, given, workspace_root
from popagent_local.state import private_folder
from popagent_proto.matrix import BY_NAME, nats_authorization

REQUIRED: Final = ("DATABASE_URL", "OBSERVABILITY_DATABASE_URL", "NATS_URL")
# As the server sees itself inside its container; who may reach it is the port mapping's matter.
NATS_LISTEN: Final = "0.0.0.0:4222"
NATS_STORE: Final = Path("/data")
NATS_MONITOR: Final = 'http: "127.0.0.1:8222"\n'


def provision(home: Path, settings: LocalSettings, folder: Path) -> Iterator[Path]:
    """Write and yield `folder/nats/nats.conf` and `folder/<service>/.env`; the same again from the same home.

    Each service's file holds its own logins and nobody else's, so that its folder may be its POPAGENT_HOME. The
    passwords lie under the home, for `bootstrap` to give to the roles. The default workspace is made, too.

    Raises:
        ConfigurationError: A server's address is missing.
    """
    for variable in REQUIRED:
        if given(variable) is None:
            raise ConfigurationError(f"{variable} is not set; nothing is embedded here", field=variable)

    def no_port(name: str) -> int:
        raise ConfigurationError(f"{name} would be embedded")  # not reached: every address is given

    infrastructure = resolve(home, settings, no_port)
    authorization = nats_authorization(infrastructure.credentials.nats())
    yield _write(folder / NATS / "nats.conf", configuration(NATS_LISTEN, NATS_STORE, NATS_MONITOR + authorization))
    for service in LOCAL_SERVICES:
        lines = [f"{name}={value}\n" for name, value in _logins(service, infrastructure, settings).items()]
        yield _write(folder / service.name / ".env", "".join(lines))
    default_workspace.make(workspace_root(home))


def _logins(service: LocalService, infrastructure: Infrastructure, settings: LocalSettings) -> dict[str, str]:
    prefix = BY_NAME[service.name].env_prefix
    found = {
        f"{prefix}_DATABASE_URL": infrastructure.database_url(service.name),
        f"{prefix}_NATS_URL": infrastructure.nats_url(service.name),
    }
    if "POPAGENT_SECRET_KEY" in service.needs:
        found["POPAGENT_SECRET_KEY"] = reveal(settings.secret_key) or infrastructure.credentials.secret_key()
    return found


def _write(path: Path, text: str) -> Path:
    """Replace the file in one step, for its owner alone."""
    private_folder(path.parent)
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return path
