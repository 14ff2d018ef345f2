"""What the operator of a workspace adds to what its commands find, and how much they may take."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from popagent_kit.errors import InvalidInputError

GIB: Final = 1024**3
MEMORY_BYTES: Final = 4 * GIB
TEMPORARY_BYTES: Final = 1 * GIB
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OURS: Final = ("HOME", "PATH")
# What stands there is ours; a mount over it would replace a boundary. Below these no place can be made for one.
_SYSTEM: Final = ("/proc/", "/dev/", "/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/")
_TAKEN: Final = tuple(
    f"/{name}"
    for name in ("", "bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "sys", "tmp", "usr", "workspace")
)


class GrantRefusedError(InvalidInputError):
    """This cannot be given to the commands of a workspace."""

    code = "grant_refused"


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine that commands may read under `target`; both are absolute paths."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Grant:
    """Set by the operator alone. `path` comes before the system's; `environment` may not hold PATH or HOME.

    Raises:
        GrantRefusedError: A path is not absolute, a target is taken, a name cannot be a variable's.
    """

    mounts: tuple[Mount, ...] = ()
    path: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for mount in self.mounts:
            _absolute(mount.source)
            if _absolute(mount.target) in _TAKEN or mount.target.startswith(_SYSTEM):
                raise GrantRefusedError(f"{mount.target} cannot be mounted on; take a path of its own, as /opt/tools.")
        for entry in self.path:
            _absolute(entry)
            if ":" in entry:
                raise GrantRefusedError(f"{entry} is more than one entry of PATH.")
        for name, value in self.environment.items():
            if not _NAME.fullmatch(name) or name in _OURS or "\0" in value:
                raise GrantRefusedError(f"{name} cannot be set; PATH has entries of its own, HOME is private.")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may take. Memory and processes are bounded for all of its programs together.

    `address_space_bytes` is wide, because programs reserve much more than they use; what they use is `memory_bytes`.
    """

    processes: int = 1_024
    memory_bytes: int = MEMORY_BYTES
    address_space_bytes: int = 128 * GIB
    file_bytes: int = 2 * GIB
    temporary_bytes: int = TEMPORARY_BYTES
    open_files: int = 4_096
    cpu_s: int = 3_600

    @classmethod
    def of_this_machine(cls) -> Limits:
        """Return limits under which one command cannot take more than half of the memory."""
        half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        return cls(memory_bytes=min(MEMORY_BYTES, half), temporary_bytes=min(TEMPORARY_BYTES, half // 4))


def _absolute(path: str) -> str:
    if not path.startswith("/") or "\0" in path or os.path.normpath(path) != path or path.startswith("//"):
        raise GrantRefusedError(f"{path} is not a plain absolute path.")
    return path
