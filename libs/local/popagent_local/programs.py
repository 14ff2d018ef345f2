"""What the supervisor runs: one program, how it is known to be ready, how it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from popagent_local.exec_shim import shim
from popagent_local.ports import LOOPBACK

T = TypeVar("T")
SERVICE_STOP_S: Final = 35.0  # a running turn gets 30 s, then it is ended with its text
# What a program needs of the surroundings; everything else of the environment is kept from it.
SURROUNDINGS: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "VIRTUAL_ENV"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "LD_LIBRARY_PATH"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    }
)


@dataclass(frozen=True)
class Program:
    """One program of the suite; `command` and `ready` are asked anew at every start."""

    name: str
    command: Callable[[], Sequence[str]]
    ready: Callable[[], Awaitable[bool]]
    env: Mapping[str, str] = field(default_factory=dict)
    port: int | None = None
    essential: bool = True
    """`up` fails when it does not start; any other program may come later."""
    stop_order: int = 0
    """0 is stopped first."""
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    stop_timeout_s: float = SERVICE_STOP_S
    start_timeout_s: float = 60.0
    quiet: bool = False
    """Only its alarms are shown in the terminal; its file has every line."""


def surroundings(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the part of the environment that every program gets."""
    env = os.environ if environ is None else environ
    return {name: value for name, value in env.items() if name in SURROUNDINGS or name.startswith("LC_")}


def python_module(module: str, *arguments: str) -> list[str]:
    """Return the command line of `python -m module`, killed at once when this process ends."""
    return shim([sys.executable, "-X", "utf8", "-m", module, *arguments], death_signal=signal.SIGKILL)


async def together(*work: Awaitable[T]) -> list[T]:
    """Wait for all; at the first error, cancel the others, wait for them too, and raise it."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_once(command: Sequence[str], log_file: Path) -> int:
    """Run a command to its end, its output appended to `log_file`, and return its exit code; cancelling kills it."""
    with log_file.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=surroundings()
        )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def http_status(
    port: int, path: str, host: str = LOOPBACK, timeout_s: float = 2.0, headers: Mapping[str, str] | None = None
) -> int | None:
    """Return the status of `GET path`, or None when nobody answers in time."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
                line = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None
    words = line.split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else None


def answers_ok(port: int, path: str, host: str = LOOPBACK) -> Callable[[], Awaitable[bool]]:
    """Return a readiness check: `GET path` gives 200."""

    async def check() -> bool:
        return await http_status(port, path, host) == 200

    return check
