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

from popagent_kit.exec_shim import shim
from popagent_kit.shared_settings import LONGEST_DOOR_DRAIN_S, LONGEST_TURN_GRACE_S
from popagent_local.ports import LOOPBACK

T = TypeVar("T")
# What a program needs to end beside what its own settings grant.
STOP_MARGIN_S: Final = 15.0
# The least that a service gets, whose settings may grant less: requests, events, telemetry and connections end one
# after the other, each bounded by itself.
SERVICE_STOP_S: Final = 35.0
BUS_STOP_S: Final = 15.0
DATABASE_STOP_S: Final = 20.0
# The whole stop takes at most this, whatever the settings grant; whoever stops the supervisor waits for it.
LONGEST_STOP_S: Final = LONGEST_TURN_GRACE_S + LONGEST_DOOR_DRAIN_S + 2 * STOP_MARGIN_S + BUS_STOP_S + DATABASE_STOP_S
# The order of the stop. The services come first: who watches at the door sees how each turn ends, and turns that are
# given time to finish still have their model.
SERVICES_STOP: Final = 0
DOOR_STOPS: Final = 1
BUS_STOPS: Final = 2
DATABASES_STOP: Final = 3
# What a program needs of the surroundings; everything else of the environment is kept from it.
SURROUNDINGS: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "VIRTUAL_ENV"),
        "SSH_AUTH_SOCK",  # repositories are cloned with the keys of whoever runs this
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
    lives: Callable[[], Awaitable[bool]] | None = None
    """Asked of a ready program every ten seconds; one that says no three times in a row hangs and is started again."""
    stop_order: int = SERVICES_STOP
    """0 is stopped first."""
    stop_signal: signal.Signals = signal.SIGTERM
    kill_signal: signal.Signals = signal.SIGKILL
    stop_timeout_s: float = STOP_MARGIN_S
    start_timeout_s: float = 60.0
    quiet: bool = False
    """Only its alarms are shown in the terminal; its file has every line."""


def surroundings(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the part of the environment that every program gets."""
    env = os.environ if environ is None else environ
    return {name: value for name, value in env.items() if name in SURROUNDINGS or name.startswith("LC_")}


def python_module(module: str, *arguments: str, nice: int = 0) -> list[str]:
    """Return the command line of `python -m module`, killed at once when this process ends."""
    return shim([sys.executable, "-X", "utf8", "-m", module, *arguments], death_signal=signal.SIGKILL, nice=nice)


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
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=surroundings(),
            start_new_session=True,
        )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def in_url(host: str) -> str:
    """Return `host` as a URL writes it: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


async def http_status(
    port: int, path: str, host: str = LOOPBACK, timeout_s: float = 2.0, headers: Mapping[str, str] | None = None
) -> int | None:
    """Return the status of `GET path`, or None when nobody answers in time."""
    lines = [f"GET {path} HTTP/1.1", f"Host: {in_url(host)}:{port}", "Connection: close"]
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


def answers_ok(port: int, path: str, timeout_s: float = 2.0) -> Callable[[], Awaitable[bool]]:
    """Return a check: `GET path` on loopback gives 200 in time."""

    async def check() -> bool:
        return await http_status(port, path, timeout_s=timeout_s) == 200

    return check
