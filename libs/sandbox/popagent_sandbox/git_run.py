"""Run git: a fixed environment, no program but git, no place but the checkout, bounded time, memory and output."""

from __future__ import annotations

import functools
import logging
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConflictError
from popagent_kit.text import one_line
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.landlock import Allowed, LandlockMissingError, Right, confine_this_thread, ruleset

log = logging.getLogger(__name__)

MOST_ERROR_BYTES: Final = 8_192
# Address space: git maps a whole index of packs; what it maps of packs themselves is bounded by our configuration.
MOST_MEMORY_BYTES: Final = 2 * 1024**3
LONGEST_WAIT_S: Final = 0.1
_LIBRARIES: Final = ("/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/lib", "/lib64", "/usr/local/lib")
_ALSO_READ: Final = ("/etc/ld.so.cache", "/nix/store", "/dev/urandom", "/usr/share/zoneinfo")


class GitMissingError(ConflictError):
    """Git is not installed where popagent runs, so the history of a repository cannot be read. Install git."""

    code = "git_missing"


class GitSlowError(ConflictError):
    """Git did not finish in time. Ask for less: one path, or fewer commits."""

    code = "git_slow"


class GitNotStartedError(ConflictError):
    """Git could not be started on this machine just now. Try again."""

    code = "git_not_started"


class GitStoppedError(ConflictError):
    """The call was stopped."""

    code = "git_stopped"


@dataclass(frozen=True)
class Output:
    """What git wrote; `cut` says that it had more to say and was ended. `errors` names paths of this machine."""

    data: bytes
    code: int
    errors: str
    cut: bool


@dataclass(frozen=True)
class Bounds:
    """How much a call may write and how long it may take; `stopped` is asked ten times a second."""

    output_bytes: int = 1_000_000
    time_s: float = 10.0
    stopped: Callable[[], bool] = lambda: False


def git_program() -> str:
    """Return the installed git.

    Raises:
        GitMissingError: There is none.
    """
    found = shutil.which("git")
    if found is None:
        raise GitMissingError
    return os.path.realpath(found)


def environment(storage: Path, objects: str) -> dict[str, str]:
    """Return all that git knows about the world: our storage, and where to find more objects (from its folder on)."""
    return {
        "PATH": "/nonexistent",
        "HOME": str(storage),
        "XDG_CONFIG_HOME": str(storage),
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_DIR": str(storage),
        "GIT_WORK_TREE": ".",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/nonexistent",
        "SSH_ASKPASS": "/nonexistent",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "/nonexistent",
    }


def run(storage: Path, folder: ContainedFolder, objects: str, arguments: Sequence[str], bounds: Bounds) -> Output:
    """Run git at the top of `folder` with the git dir `storage`.

    Raises:
        GitMissingError: There is no git.
        GitNotStartedError: The machine refused to start it.
        GitSlowError: It took longer than the bounds allow.
        GitStoppedError: `stopped` said so.
    """
    program = git_program()
    with folder.descriptor() as descriptor:
        # Named by its descriptor, so that what is swapped on the way to it changes nothing.
        here = f"/proc/self/fd/{descriptor}" if sys.platform == "linux" else str(folder.root)
        command = _Command(
            program, (program, "--no-pager", *arguments), environment(storage, objects), here, descriptor
        )
        process = _started(command, storage)
    try:
        _limit(process.pid, bounds.time_s)
        return _read(process, bounds)
    finally:
        _end(process)


def is_confined() -> bool:
    """Tell whether the kernel itself keeps git within the checkout.

    Raises:
        GitMissingError: There is no git.
    """
    return _has_rules() and _is_program(git_program())


@functools.cache
def _has_rules() -> bool:
    try:
        with ruleset(()):
            return True
    except LandlockMissingError:
        return False


@dataclass(frozen=True)
class _Command:
    program: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    here: str
    folder: int


def _started(command: _Command, storage: Path) -> subprocess.Popen[bytes]:
    """Start git from a thread of its own, since the rules hold for a thread and whatever it starts, for good."""
    outcome: list[subprocess.Popen[bytes] | BaseException] = []

    def start() -> None:
        try:
            _confine(command, storage)
            outcome.append(
                subprocess.Popen(  # noqa: S603 (git itself, arguments checked by git.py)
                    command.arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=command.here,
                    env=command.environment,
                    pass_fds=(command.folder,),
                    start_new_session=True,
                )
            )
        except BaseException as error:  # noqa: BLE001 (raised again in the caller's thread)
            outcome.append(error)

    thread = threading.Thread(target=start, name="git")
    thread.start()
    thread.join()
    result = outcome[0]
    if isinstance(result, OSError):
        log.warning("git cannot be started", exc_info=result)
        raise GitNotStartedError from result
    if isinstance(result, BaseException):
        raise result
    return result


def _confine(command: _Command, storage: Path) -> None:
    if not _is_program(command.program):
        _note_unconfined()
        return
    prefix = Path(command.program).parent.parent
    libraries = (*_LIBRARIES, *(str(prefix / name) for name in ("lib", "lib64", "libexec")))
    rules = [
        Allowed(command.program, Right.START | Right.READ),
        *(Allowed(path, Right.START | Right.READ) for path in _loaders(command.program)),
        *(Allowed(path, Right.READ | Right.LIST) for path in (*libraries, *_ALSO_READ)),
        Allowed(os.devnull, Right.READ | Right.WRITE),
        Allowed(str(storage), Right.READ | Right.LIST),
        Allowed(command.folder, Right.READ | Right.LIST),
    ]
    try:
        with ruleset(rules) as made:
            confine_this_thread(made)
    except LandlockMissingError:
        # Then the git dir of ours alone keeps programs of the repository from running; see git_dir.py.
        _note_unconfined()


@functools.cache
def _note_unconfined() -> None:
    log.info("git cannot be confined to a folder here; links in a repository's storage are looked for instead")


@functools.lru_cache(maxsize=4)
def _is_program(path: str) -> bool:
    """Tell whether this is the program itself; a script in its place starts others, which the rules would forbid."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


@functools.lru_cache(maxsize=4)
def _loaders(program: str) -> tuple[str, ...]:
    """Return the dynamic loader that an ELF program names, since the kernel starts it, too."""
    head = Path(program).read_bytes()[:4_096] if os.path.isfile(program) else b""
    start = head.find(b"/", 64)
    while start >= 0:
        name = head[start : head.find(b"\0", start)]
        if b"ld" in name and os.path.isfile(name):
            return (os.path.realpath(os.fsdecode(name)),)
        start = head.find(b"/", start + 1)
    return ()


def _limit(pid: int, time_s: float) -> None:
    if sys.platform != "linux":
        return
    seconds = int(time_s) + 1
    try:
        resource.prlimit(pid, resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))
        resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except ProcessLookupError:
        return  # it has ended already


def _read(process: subprocess.Popen[bytes], bounds: Bounds) -> Output:
    assert process.stdout is not None
    assert process.stderr is not None
    deadline = time.monotonic() + bounds.time_s
    data, errors, cut = bytearray(), bytearray(), False
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, data)
        waiting.register(process.stderr, selectors.EVENT_READ, errors)
        while waiting.get_map() and not cut:
            left = deadline - time.monotonic()
            if left <= 0:
                log.warning("git ran out of time", extra={"arguments": one_line(str(process.args), 300)})
                raise GitSlowError
            if bounds.stopped():
                raise GitStoppedError
            for key, _ in waiting.select(min(left, LONGEST_WAIT_S)):
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    waiting.unregister(key.fileobj)
                elif key.data is data:
                    data += chunk
                    cut = len(data) > bounds.output_bytes
                elif len(errors) < MOST_ERROR_BYTES:
                    errors += chunk
    if cut:
        return Output(bytes(data[: bounds.output_bytes]), 0, "", cut=True)
    try:
        code = process.wait(max(0.1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise GitSlowError from error
    return Output(bytes(data), code, errors.decode("utf-8", "replace"), cut=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what still runs of it, take its status, close its pipes."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
