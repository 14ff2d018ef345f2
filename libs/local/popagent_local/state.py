"""What `up` writes down under `<home>/run`: a lock that ends with its holder, and a state file that others read."""

from __future__ import annotations

import fcntl
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from popagent_kit import json
from popagent_kit.errors import ConflictError, MalformedJsonError
from popagent_kit.settings import command

Phase = Literal["starting", "ready", "stopping", "stopped", "failed"]


class AlreadyRunningError(ConflictError):
    """Another `popagent up` holds this home."""

    code = "already_running"


@dataclass
class ProgramState:
    """One program of the suite; `state` is starting, ready, restarting or stopped."""

    state: str = "starting"
    pid: int | None = None
    port: int | None = None
    restarts: int = 0
    since: str = ""
    essential: bool = True
    detail: str = ""


@dataclass
class SuiteState:
    """The whole suite; `ports` outlives a run, so that the next one listens on the same."""

    home: str = ""
    pid: int = 0
    since: str = ""
    phase: Phase = "starting"
    boot_id: str = ""
    address: str = ""
    error: str = ""
    ports: dict[str, int] = field(default_factory=dict)
    programs: dict[str, ProgramState] = field(default_factory=dict)

    @classmethod
    def read(cls, home: Path) -> Self | None:
        """Return the last state, or None when there never was one or the file is not ours to understand."""
        try:
            raw: Any = json.loads(state_file(home).read_bytes())
            programs = {name: ProgramState(**row) for name, row in raw.pop("programs").items()}
            return cls(**raw, programs=programs)
        except (FileNotFoundError, MalformedJsonError, TypeError, KeyError, AttributeError):
            return None

    def write(self, home: Path) -> None:
        """Replace the file in one step."""
        draft = state_file(home).with_suffix(".new")
        draft.write_bytes(json.dumps(asdict(self)))
        draft.replace(state_file(home))


def state_file(home: Path) -> Path:
    """Return where the state lies."""
    return home / "run" / "state.json"


def private_folder(path: Path) -> Path:
    """Make `path`, for its owner alone, and return it."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


class HomeLock:
    """Held by the process that supervises `home`; the kernel frees it when that process ends, however it ends."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            AlreadyRunningError: The message names the holder.
        """
        if not self.try_take():
            raise AlreadyRunningError(describe_holder(self.home))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def try_take(self) -> bool:
        """Tell whether the lock is ours now."""
        private_folder(self.home)
        private_folder(self.home / "run")
        descriptor = os.open(self.home / "run" / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_held(home: Path) -> bool:
    """Tell whether a supervisor runs on `home`."""
    try:
        descriptor = os.open(home / "run" / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(home: Path) -> SuiteState | None:
    """Return the state of the supervisor that holds `home`, or None while it has not written one yet."""
    state = SuiteState.read(home)
    try:
        pid = int((home / "run" / "lock").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return state if state is not None and state.pid == pid else None


def describe_holder(home: Path) -> str:
    """Say who holds `home` and what to do."""
    state = holder(home)
    who = f"process {state.pid}, since {state.since}" if state else "a process that has not said its name yet"
    return (
        f"popagent runs already on {home} ({who})."
        f" Stop it with `{command('down')}`, or set POPAGENT_HOME to another folder."
    )
