"""Whether commands can be confined on this machine: tried once, by confining one."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.text import one_line
from popagent_sandbox import bubblewrap
from popagent_sandbox.grants import Grant, Limits
from popagent_sandbox.hidden import Hidden
from popagent_sandbox.orphans import end_orphans
from popagent_sandbox.plan import in_memory, plan_for
from popagent_sandbox.seccomp import UnknownArchitectureError, filter_program

log = logging.getLogger(__name__)

TRIAL_S: Final = 15.0
# A setting, the value that denies namespaces, and one that allows them.
_SETTINGS: Final = (
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("user.max_user_namespaces", "0", "10000"),
)
_CONTAINER: Final = ("/.dockerenv", "/run/.containerenv")
_GUIDE: Final = "docs/sandbox.md says what each system needs"


@dataclass(frozen=True, slots=True)
class Confinement:
    """The program that confines, or why none does and what to do about it."""

    program: str | None
    problem: str | None


@functools.cache
def confinement() -> Confinement:
    """Return what was found at the first call, which confines a command that does nothing; blocks for 10 ms or so."""
    if sys.platform != "linux":
        return Confinement(None, "Commands can be confined on Linux only, so agents cannot run any here.")
    try:
        filter_program()
    except UnknownArchitectureError as error:
        return Confinement(None, f"Commands cannot be confined on {error} processors, so agents cannot run any.")
    complaints = []
    if ended := end_orphans(bubblewrap.programs()):
        log.warning("ended what a kill left of sandboxes", extra={"processes": ended})
    for program in bubblewrap.programs():
        complaint = _complaint(program)
        if complaint is None:
            return Confinement(program, None)
        complaints.append(complaint)
    if not complaints:
        return Confinement(None, "bubblewrap is not installed, so agents cannot run commands. Install it.")
    return Confinement(
        None, f"Commands cannot be confined here, so agents cannot run any ({complaints[0]}). {_advice()}."
    )


async def confinement_found() -> Confinement:
    """Return the same without holding up the event loop, in which only the first look would block."""
    return confinement() if confinement.cache_info().currsize else await asyncio.to_thread(confinement)


def confinement_problem() -> str | None:
    """Return why no command can be run and what to do about it, None when commands can be confined."""
    return confinement().problem


def _complaint(program: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="popagent-") as folder, ExitStack() as held:
        workspace = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, workspace)
        limits = Limits.of_this_machine()
        plan = plan_for(
            program, ["/bin/sh", "-c", ":"], workspace_fd=workspace, hidden=Hidden(), grant=Grant(), limits=limits
        )
        fds = {name: in_memory(held, name, content) for name, content in plan.files.items()}
        try:
            done = subprocess.run(  # noqa: S603 - our own program, with a list of arguments
                [program, *plan.options(fds), "--", *plan.command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={},
                cwd="/",
                timeout=TRIAL_S,
                pass_fds=(*fds.values(), workspace),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return one_line(str(error), 200)
    said = one_line(done.stderr.decode(errors="replace").removeprefix("bwrap: "), 200).rstrip(".")
    return None if done.returncode == 0 else said or f"bubblewrap ended with status {done.returncode}"


def _advice() -> str:
    if any(Path(path).exists() for path in _CONTAINER):
        return f"In a container it takes the seccomp profile in deploy/; {_GUIDE}"
    for name, denied, allowed in _SETTINGS:
        file = Path("/proc/sys", *name.split("."))
        if file.exists() and file.read_text(encoding="ascii").strip() == denied:
            return f"This system denies user namespaces: `sysctl {name}={allowed}` allows them; {_GUIDE}"
    return f"It takes user namespaces; {_GUIDE}"
