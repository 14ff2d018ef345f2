"""Real servers for tests, as direct children of the test process; each can be killed, frozen and restarted."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import ClassVar, Final, Protocol

from popagent_local.nats import EmbeddedNats
from popagent_local.ports import free_port
from popagent_local.postgres import EmbeddedPostgres

START_TIMEOUT_S: Final = 60.0
STOP_TIMEOUT_S: Final = 30.0
POLL_S: Final = 0.01
PASSWORD: Final = "test-superuser"


class _Embedded(Protocol):
    stop_signal: ClassVar[signal.Signals]
    kill_signal: ClassVar[signal.Signals]

    def start_command(self) -> list[str]: ...

    def accepts(self) -> bool: ...


class Server:
    """A running server; every method returns when its effect is there."""

    def __init__(self, name: str, embedded: _Embedded, folder: Path) -> None:
        self.name = name
        self.embedded = embedded
        self.log_file = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The server's process id; an error when it does not run."""
        assert self.process is not None, f"{self.name} does not run"
        return self.process.pid

    @property
    def alive(self) -> bool:
        """The process exists (frozen or not)."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start, and return when clients can connect."""
        self._prepare()
        self.process = self._spawn(self.embedded.start_command())
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self.embedded.accepts():
            if not self.alive or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} did not start: {self.log_file.read_text(errors='replace')[-2000:]}")
            time.sleep(POLL_S)

    def stop(self, immediate: bool = False) -> None:
        """End cleanly, or with `immediate` so that PostgreSQL must recover; nothing happens when it does not run."""
        self._end(self.embedded.kill_signal if immediate else self.embedded.stop_signal)

    def kill(self) -> None:
        """End with kill -9."""
        self._end(signal.SIGKILL)

    def restart(self, immediate: bool = False) -> None:
        """Stop and start again on the same port and folder."""
        self.stop(immediate)
        self.start()

    def pause(self) -> None:
        """Freeze the process group: connections stay open and nobody answers."""
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Thaw."""
        os.killpg(self.pid, signal.SIGCONT)

    def _prepare(self) -> None:
        """Make what the first start needs."""

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        with self.log_file.open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def _end(self, number: signal.Signals) -> None:
        process = self.process
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.process = None


@functools.cache
def fresh_cluster() -> Path:
    """Return the folder of a cluster that was never started; a copy of it takes a tenth of the time of `initdb`."""
    folder = Path(tempfile.mkdtemp(prefix="popagent-cluster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    postgres = EmbeddedPostgres(folder / "postgres", 0, PASSWORD, durable=False)
    subprocess.run(postgres.init_command(), stdin=subprocess.DEVNULL, capture_output=True, check=True)
    postgres.adopt()
    return postgres.data_dir


class PostgresServer(Server):
    """A cluster of its own, thrown away with its folder."""

    def __init__(self, folder: Path, *, settings: dict[str, str] | None = None) -> None:
        self.postgres = EmbeddedPostgres(
            folder / "postgres",
            free_port(),
            PASSWORD,
            settings={"shared_buffers": "32MB", "max_connections": "200", **(settings or {})},
            durable=False,
        )
        super().__init__("postgres", self.postgres, folder)

    def dsn(self, database: str = "postgres") -> str:
        """Return the superuser's DSN."""
        return self.postgres.dsn(database)

    def _prepare(self) -> None:
        if not self.postgres.initialised:
            shutil.copytree(fresh_cluster(), self.postgres.data_dir, symlinks=True)


class NatsServer(Server):
    """A server of its own with file storage; `config` is its authorization block."""

    def __init__(self, folder: Path, *, config: str = "") -> None:
        self.nats = EmbeddedNats(folder / "nats", free_port(), config)
        super().__init__("nats", self.nats, folder)

    @property
    def url(self) -> str:
        """The address, without user."""
        return self.nats.url

    def wipe(self) -> None:
        """Stop, forget every stream and message, start."""
        self.stop()
        self.log_file.write_bytes(b"")
        for item in sorted((self.nats.store_dir / "jetstream").rglob("*"), reverse=True):
            item.rmdir() if item.is_dir() else item.unlink()
        self.start()
