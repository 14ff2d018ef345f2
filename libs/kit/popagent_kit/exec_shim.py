"""Become another program that dies with its parent.

Run as a script, with nothing but the standard library:
`python -I -S exec_shim.py --parent PID [--signal N] [--nice N] [--userns | --uid N] -- program argument…`
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import Final

PR_SET_PDEATHSIG: Final = 1
CLONE_NEWUSER: Final = 0x10000000
INNER_ID: Final = 1000
EXIT_ORPHANED: Final = 125
EXIT_NO_NAMESPACE: Final = 124


def shim(
    program: Sequence[str],
    *,
    parent: int | None = None,
    death_signal: int = signal.SIGKILL,
    userns: bool = False,
    uid: int | None = None,
    nice: int = 0,
) -> list[str]:
    """Return the command line that runs `program` under this shim.

    The kernel watches the *thread* that forks: start the command from a thread that lives as long as the program may.

    Args:
        program: The first word is a path, or is looked up in PATH.
        parent: The process whose end ends the program; this process when None.
        death_signal: What the program gets when its parent is gone.
        userns: Run in a new user namespace as an ordinary user who owns what this user owns.
        uid: Change to this user and group first; needs root.
        nice: 1 to 19 lets other programs go first when the processors are busy.
    """
    options = ["--parent", str(os.getpid() if parent is None else parent), "--signal", str(int(death_signal))]
    if userns:
        options.append("--userns")
    if uid is not None:
        options += ["--uid", str(uid)]
    if nice:
        options += ["--nice", str(nice)]
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), *options, "--", *program]


def die_with_parent(death_signal: int, parent: int) -> None:
    """Ask the kernel for `death_signal` when the parent ends; exit at once when it is gone already."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(EXIT_ORPHANED)


def enter_user_namespace() -> None:
    """Become uid 1000 of a new user namespace; outside, the same user as before owns every file.

    Raises:
        OSError: This system does not allow user namespaces here.
    """
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INNER_ID} {uid} 1"),
        ("gid_map", f"{INNER_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def become(uid: int) -> None:
    """Drop root for good: no extra groups, then group and user `uid`."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def let_others_go_first(nice: int) -> None:
    """Lower the priority of this process and, where the kernel groups by session, of its group."""
    os.nice(nice)
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as file:
            file.write(str(nice))
    except OSError:
        pass  # this kernel does not group by session, so that the priority of the process counts


def main(arguments: list[str]) -> None:
    """Parse, confine, exec; never returns."""
    split = arguments.index("--")
    options, program = arguments[:split], arguments[split + 1 :]
    parent = int(options[options.index("--parent") + 1])
    death_signal = int(options[options.index("--signal") + 1]) if "--signal" in options else signal.SIGKILL
    if os.getpgrp() != os.getpid():
        os.setsid()  # a Ctrl-C in the terminal is the supervisor's to pass on, in its order
    if "--nice" in options:
        let_others_go_first(int(options[options.index("--nice") + 1]))
    if "--userns" in options:
        try:
            enter_user_namespace()
        except OSError as error:
            print(f"no user namespace: {error}", file=sys.stderr)  # noqa: T201 (its only channel)
            os._exit(EXIT_NO_NAMESPACE)
    elif "--uid" in options:
        become(int(options[options.index("--uid") + 1]))
    # Last, since a change of user or namespace clears it.
    die_with_parent(death_signal, parent)
    os.execvp(program[0], program)  # noqa: S606 (no shell is wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
