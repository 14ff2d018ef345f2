"""Clone a repository for the operator: nothing of it runs, and time, size and what it may reach are bounded.

It is the one place where git uses the network, and so the operator's own keys and configuration. What agents do with
the checkout later goes through git.py, which knows neither.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import resource
import shutil
import signal
import stat
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConflictError
from popagent_kit.exec_shim import shim
from popagent_kit.text import one_line
from popagent_sandbox.git_run import git_program
from popagent_telemetry import redact

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 1.0
MOST_SAID_BYTES: Final = 16_384
LONGEST_LINE_BYTES: Final = 4_096
# A file takes at least so much of a disk.
SMALLEST_FILE_BYTES: Final = 4_096
LEFT_FREE_BYTES: Final = 256 * 1024 * 1024
END_S: Final = 5.0
# What a clone may do: no hook of a template, no submodule, no program as a transport, no file of this machine, and no
# server that keeps a connection open without a byte.
_CONFIG: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
    "http.lowSpeedLimit=100",
    "http.lowSpeedTime=60",
    "advice.detachedHead=false",
)
# The account's keys, agent, helpers, proxies and authorities. Nothing of ours: neither keys nor database logins.
_ACCOUNT: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|LD_LIBRARY_PATH|XDG_CONFIG_HOME|XDG_CACHE_HOME|XDG_RUNTIME_DIR|GNUPGHOME"
    r"|SSH_AUTH_SOCK|(?:HTTPS?|NO|ALL)_PROXY|(?:https?|no|all)_proxy|SSL_CERT_(?:FILE|DIR)|CURL_CA_BUNDLE"
    r"|GIT_(?:SSH|SSH_COMMAND|SSL_CAINFO|SSL_CAPATH|ASKPASS|EXEC_PATH|CONFIG_GLOBAL|CONFIG_SYSTEM|CONFIG_NOSYSTEM)"
)
_STEP: Final = re.compile(
    rb"(?:remote: )?(Counting objects|Compressing objects|Receiving objects|Resolving deltas|Updating files)"
    rb": +(\d{1,3})%(?:[^|\r\n]*?, ([\d.]+ [KMG]?i?B|\d+ bytes))?"
)
# Which share of the whole a step is, and what it is called.
_STEPS: Final = {
    b"Counting objects": (0.01, 0.04, "The server counts"),
    b"Compressing objects": (0.04, 0.10, "The server compresses"),
    b"Receiving objects": (0.10, 0.75, "Receiving"),
    b"Resolving deltas": (0.75, 0.90, "Resolving"),
    b"Updating files": (0.90, 0.99, "Writing files"),
}


class CloneFailedError(ConflictError):
    """Git could not clone this repository."""

    code = "clone_failed"


class CloneTooLargeError(CloneFailedError):
    """The repository is larger than a clone may be."""

    code = "clone_too_large"


class CloneSlowError(CloneFailedError):
    """The clone took longer than it may."""

    code = "clone_slow"


@dataclass(frozen=True)
class CloneBounds:
    """How long a clone may take, and how much of the disk its folder may."""

    time_s: float
    size_bytes: int


Progress = Callable[[float, str], Awaitable[None]]
"""Told the share that is done, which never falls, and what git does, in words of ours."""


async def clone(url: str, folder: Path, bounds: CloneBounds, progress: Progress) -> None:
    """Clone into `folder`, which does not exist; when it fails, what there is of it is the caller's to remove.

    Cancelling ends git and what it started.

    Raises:
        GitMissingError: There is no git.
        CloneFailedError: Git failed, or a bound was reached; the message says what to do and names no path.
    """
    settings = [part for pair in _CONFIG for part in ("-c", pair)]
    options = ["--template=", "--no-recurse-submodules", "--no-hardlinks", "--progress"]
    command = [git_program(), *settings, "clone", *options, "--", url, str(folder)]
    process = await asyncio.create_subprocess_exec(
        *shim(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder.parent,
        env=_environment(),
        start_new_session=True,
        limit=LONGEST_LINE_BYTES,
    )
    try:
        _limit(process.pid, bounds)
        async with asyncio.timeout(bounds.time_s):
            said = await _followed(process, folder, bounds, progress)
            code = await process.wait()
    except TimeoutError as error:
        raise CloneSlowError(
            f"The clone was not done after {bounds.time_s / 60:,.0f} minutes (POPAGENT_CLONE_MINUTES) and was ended."
        ) from error
    finally:
        await _end(process)
    if code != 0:
        raise _failure(said, url, folder)
    _refuse_large(await asyncio.to_thread(size_of, folder), bounds)


async def _followed(process: asyncio.subprocess.Process, folder: Path, bounds: CloneBounds, progress: Progress) -> str:
    """Pass progress on and watch the size until git has ended; returns the end of what else it said."""
    watching = asyncio.create_task(_watch(folder, bounds))
    reading = asyncio.create_task(_read(process, progress))
    ending = asyncio.create_task(process.wait())
    try:
        done, _ = await asyncio.wait({watching, reading, ending}, return_when=asyncio.FIRST_COMPLETED)
        if watching in done:
            await watching
        if reading not in done:
            # A program that git started may keep the output open for longer than git lives.
            await asyncio.wait({reading}, timeout=END_S)
        return await reading if reading.done() else ""
    finally:
        for task in (watching, reading, ending):
            task.cancel()
        await asyncio.gather(watching, reading, ending, return_exceptions=True)


async def _watch(folder: Path, bounds: CloneBounds) -> None:
    """Look at the size, each time after ten times as long as looking took, a second at least.

    Raises:
        CloneTooLargeError: It is larger than it may be, or the disk is almost full.
    """
    pause_s = LOOK_EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        began = time.monotonic()
        _refuse_large(await asyncio.to_thread(size_of, folder), bounds)
        if shutil.disk_usage(folder.parent).free < LEFT_FREE_BYTES:
            raise CloneTooLargeError("The disk of the workspaces is almost full. Free some space, then try again.")
        pause_s = max(LOOK_EVERY_S, 10 * (time.monotonic() - began))


def _refuse_large(size_bytes: int, bounds: CloneBounds) -> None:
    if size_bytes > bounds.size_bytes:
        raise CloneTooLargeError(
            f"The repository takes more than {bounds.size_bytes // 1024**2:,} MiB (POPAGENT_CLONE_MIB) of the disk. "
            "Clone it yourself, shallow perhaps, below the workspace root, and register the folder."
        )


def size_of(folder: Path) -> int:
    """Return the bytes below a folder as a disk keeps them; what vanishes meanwhile does not count."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        total += max(SMALLEST_FILE_BYTES, status.st_size if stat.S_ISREG(status.st_mode) else 0)
                        if stat.S_ISDIR(status.st_mode):
                            waiting.append(Path(entry.path))
        except OSError:
            continue
    return total


async def _read(process: asyncio.subprocess.Process, progress: Progress) -> str:
    done, said = 0.0, bytearray()
    await progress(0.0, "Connecting")
    async for line in _lines(process):
        step = _STEP.match(line)
        if step is None:
            said += line + b"\n"
            del said[:-MOST_SAID_BYTES]
            continue
        first, last, words = _STEPS[step[1]]
        done = max(done, first + (last - first) * min(100, int(step[2])) / 100)
        amount = f", {step[3].decode()}" if step[3] else ""
        await progress(done, f"{words}: {int(step[2])} %{amount}")
    return said.decode("utf-8", "replace")


async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[bytes]:
    """Yield what git writes, by lines; progress ends each of its own with a carriage return."""
    assert process.stderr is not None
    open_line = b""
    while data := await process.stderr.read(LONGEST_LINE_BYTES):
        *lines, open_line = re.split(rb"[\r\n]", open_line + data)
        for line in lines:
            yield line.strip()
        open_line = open_line[:LONGEST_LINE_BYTES]
    yield open_line.strip()


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if _ACCOUNT.fullmatch(name)}
    return {
        **kept,
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": "https:ssh:git",
        # Nobody is there to be asked.
        "GIT_TERMINAL_PROMPT": "0",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }


def _limit(pid: int, bounds: CloneBounds) -> None:
    """Bound single files and processor time in the kernel, too: a look at the folder comes once a second."""
    seconds = int(bounds.time_s) + 60
    try:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (bounds.size_bytes, bounds.size_bytes))
        resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:
        return  # it has ended already


async def _end(process: asyncio.subprocess.Process) -> None:
    """End git and the programs that it started, which are in its session; its caller removes what it wrote."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _failure(said: str, url: str, folder: Path) -> CloneFailedError:
    """Say why, and what to do where that is known; git's own words may hold paths of this machine, texts of others."""
    text = said.replace(str(folder), "the folder")
    log.warning("git could not clone", extra={"reason": one_line(redact(text), 600)})
    folded = text.casefold()
    for signs, sentence in _REASONS:
        if any(sign in folded for sign in signs):
            return CloneFailedError(sentence)
    fatal = [line for line in text.splitlines() if line.startswith(("fatal:", "error:"))]
    told = one_line(redact(fatal[-1].partition(":")[2].replace(url, "it")), 300) if fatal else ""
    return CloneFailedError(f"Git could not clone it: {told}" if told else "Git could not clone it, and said nothing.")


_ELSE: Final = "Or clone it yourself below the workspace root, and register the folder."
_REASONS: Final = (
    (("no space left",), "The disk of the workspaces is full. Free some space, then try again."),
    (
        ("unable to write file", "file too large", "file size limit"),
        "A file of it could not be written: larger than a clone may be (POPAGENT_CLONE_MIB), or the disk is full.",
    ),
    (
        ("could not read username", "could not read password", "authentication failed", "permission denied (publickey"),
        "The server wants to know who asks: give the account that popagent runs as an ssh key or a credential helper "
        f"for it. {_ELSE}",
    ),
    (
        ("host key verification failed",),
        "This account does not know the server's ssh key. Connect to it once with ssh as the account that popagent "
        f"runs as. {_ELSE}",
    ),
    (
        ("could not resolve host", "name or service not known", "temporary failure in name resolution"),
        "There is no server of this name, or the network is away.",
    ),
    (
        ("connection refused", "failed to connect", "network is unreachable", "no route to host", "timed out"),
        "The server does not answer there.",
    ),
    (
        ("transport 'file' not allowed", "transport 'http' not allowed", "transport 'ext' not allowed"),
        "The server sends to an address of a kind that is not cloned from.",
    ),
    (("ssl certificate", "server certificate", "certificate verify"), "The server's certificate cannot be trusted."),
    (
        ("not found", "does not exist", "does not appear to be a git repository", "access denied or repository"),
        "There is no repository at this address, or the account that popagent runs as may not read it.",
    ),
)
