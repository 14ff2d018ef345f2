"""What to start for one confined command: the program that confines, its options, and the files it is handed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from popagent_sandbox import bubblewrap
from popagent_sandbox.grants import Grant, Limits
from popagent_sandbox.hidden import Hidden
from popagent_sandbox.seccomp import filter_program

_FILTER: Final = "filter"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start: bubblewrap's options are asked for once the contents of `files` have descriptors."""

    program: str
    options: Callable[[Mapping[str, int]], Sequence[str]]
    command: Sequence[str]
    files: Mapping[str, bytes]
    descriptors: Sequence[int]
    workspace_fd: int
    limits: Limits


def plan_for(
    program: str,
    command: Sequence[str],
    *,
    workspace_fd: int,
    hidden: Hidden,
    grant: Grant,
    limits: Limits,
    pinned_fds: Mapping[str, int] | None = None,
    protected_fds: Mapping[str, int] | None = None,
    written: Mapping[str, bytes] | None = None,
) -> Plan:
    """Return what to start for `command` in the folder behind `workspace_fd`; descriptors stay the caller's.

    The command finds the files of `written` under their absolute paths. By paths relative to the workspace it can only
    read what `protected_fds` names, and not rename the folders of `pinned_fds`.
    """
    pinned_fds = pinned_fds or {}
    protected_fds = protected_fds or {}
    placed = {**{path: text.encode() for path, text in bubblewrap.WRITTEN.items()}, **(written or {})}

    def options(fds: Mapping[str, int]) -> list[str]:
        room = bubblewrap.options(
            workspace_fd=workspace_fd,
            hidden=hidden,
            pinned_fds=pinned_fds,
            protected_fds=protected_fds,
            grant=grant,
            limits=limits,
            written_fds={path: fds[path] for path in placed},
        )
        return [*room, "--seccomp", str(fds[_FILTER])]

    files = {**placed, _FILTER: filter_program()}
    return Plan(
        program,
        options,
        command,
        files,
        (workspace_fd, *pinned_fds.values(), *protected_fds.values()),
        workspace_fd,
        limits,
    )


def in_memory(held: ExitStack, name: str, content: bytes) -> int:
    """Return a descriptor of a file without a place that holds `content`, closed with `held`."""
    fd = os.memfd_create(name)
    held.callback(os.close, fd)
    with open(fd, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
