"""Works as who runs commands of agents does in a container: an ordinary user, no rights, the profile of the file.

`python under_profile.py PROFILE PROGRAM FOLDER CALL...`: PROGRAM is the bubblewrap, anybody may write to FOLDER, and
the CALLs are left out of the profile. Prints as JSON what each attempt came to.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any, Final

import uvloop

from popagent_sandbox import bubblewrap
from popagent_sandbox.commands import Commands
from popagent_sandbox.confinement import confinement, confinement_problem
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.git import checkout

SECCOMP: Final = ctypes.CDLL(find_library("seccomp"))
ALLOW: Final = 0x7FFF0000
ERRNO: Final = 0x00050000
OPERATORS: Final = {"SCMP_CMP_NE": 1, "SCMP_CMP_EQ": 4}
NO_NEW_PRIVILEGES: Final = 38
# Whoever runs popagent in the image.
USER: Final = 10001
VSOCK: Final = 40
FORBIDDEN: Final[tuple[tuple[Any, ...], ...]] = (
    ("ptrace", 0),
    ("keyctl", 0),
    ("bpf", 0),
    ("io_uring_setup", 1),
    ("setns", 0),
    ("personality", 0x0040000),
    ("socket", VSOCK, 1, 0),
)


class Comparison(ctypes.Structure):
    """A condition on an argument, as libseccomp takes it."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("value", ctypes.c_uint64),
        ("mask_value", ctypes.c_uint64),
    )


def load(profile: dict[str, Any], without: list[str]) -> None:
    """Bind this process, and all that it starts, to the profile."""
    SECCOMP.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(SECCOMP.seccomp_init(ctypes.c_uint32(ERRNO | profile["defaultErrnoRet"])))
    for rule in profile["syscalls"]:
        compared = [
            Comparison(each["index"], OPERATORS[each["op"]], each["value"], each.get("valueTwo", 0))
            for each in rule.get("args", ())
        ]
        conditions = (Comparison * len(compared))(*compared)
        for name in rule["names"]:
            number = SECCOMP.seccomp_syscall_resolve_name(name.encode())
            # What this processor or an older libseccomp does not know cannot be called by its number either.
            if number >= 0 and name not in without:
                done = SECCOMP.seccomp_rule_add_array(
                    context, ctypes.c_uint32(ALLOW), number, len(compared), conditions
                )
                if done != 0:
                    raise OSError(-done, f"seccomp_rule_add_array of {name}")
    if (done := SECCOMP.seccomp_load(context)) != 0:
        raise OSError(-done, "seccomp_load")


def refused(lib: ctypes.CDLL, name: str, *arguments: int) -> bool:
    """Tell whether the call is forbidden: one that is let in fails for its arguments, in another way or not at all."""
    number = SECCOMP.seccomp_syscall_resolve_name(name.encode())
    ctypes.set_errno(0)
    return lib.syscall(number, *arguments) == -1 and ctypes.get_errno() == 1


async def worked(folder: Path) -> tuple[str, list[str]]:
    """Return what a confined command printed in a new repository, and what git says is changed there afterwards."""
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True, env={"PATH": os.environ["PATH"]})
    with ContainedFolder(folder) as opened:
        commands = Commands(opened)
        ran = await commands.run("echo made | tee made.txt; id -u")
        commands.close()
        with checkout(opened) as found:
            changed = [change.path for change in found.status().changes]
    return ran.printed.head, changed


def main() -> None:
    """Rehearse, give up every right, load the profile, and work."""
    profile, program, folder, *without = sys.argv[1:]
    rules = json.loads(Path(profile).read_text(encoding="utf-8"))
    libc = ctypes.CDLL(None, use_errno=True)
    os.environ.update({"TMPDIR": folder, "HOME": folder})
    bubblewrap.programs = lambda: [program]
    # Modules are loaded while they can be: an ordinary user may not reach those of this Python.
    uvloop.run(worked(Path(folder, "rehearsal")))
    confinement.cache_clear()
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(USER, USER, USER)
        os.setresuid(USER, USER, USER)
    libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    load(rules, without)
    problem = confinement_problem()
    printed, changed = uvloop.run(worked(Path(folder, "workspace"))) if problem is None else ("", [])
    kinds = [name for name, *arguments in FORBIDDEN if refused(libc, name, *arguments)]
    print(json.dumps({"problem": problem, "printed": printed, "changed": changed, "refused": kinds}))


if __name__ == "__main__":
    main()
