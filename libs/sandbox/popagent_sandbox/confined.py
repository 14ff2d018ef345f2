"""One command in a sandbox of its own, from its start to the death of the last program it left behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import resource
import signal
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from popagent_kit import json
from popagent_kit.errors import DependencyError, MalformedJsonError
from popagent_kit.text import one_line
from popagent_sandbox import cgroup
from popagent_sandbox.census import Census
from popagent_sandbox.disk import DiskRoom
from popagent_sandbox.grants import Limits
from popagent_sandbox.output import Output
from popagent_sandbox.plan import Plan, in_memory

START_S: Final = 20.0
CENSUS_S: Final = 0.2
PIPE_BYTES: Final = 1 << 20
# A command that prints faster waits in its own pipe: reading it all would keep this process from everything else.
READ_BYTES_PER_S: Final = 128 * 1024**2
LARGE_READ_BYTES: Final = 1 << 16
NICENESS: Final = 5
# The kernel ends these first when memory runs out.
OOM_SCORE: Final = "1000"
STOPPED: Final = "it was stopped"
# Behind bubblewrap's own waiting, which ends as well when we are killed: the command starts only when we say so, and we
# say so once every process between us and it has asked the kernel to be ended with the one before it.
_GATE: Final = ("/bin/sh", "-c", 'echo; read -r go || exit 1; exec "$@" </dev/null', "sh")
_AT_THE_GATE: Final = b"\n"
_FILTERED: Final = re.compile(r"^Seccomp:\s+2$", re.MULTILINE)
TIE_POLL_S: Final = 0.0005


class ConfinementError(DependencyError):
    """The sandbox could not be set up, so nothing was run."""

    code = "confinement"


@dataclass(frozen=True, slots=True)
class Ended:
    """`status` is the command's own, 128 and a signal's number if that ended it; None when we did, for `why`."""

    status: int | None
    why: str = ""
    set_up: bool = True


class Confined:
    """A running command. `kill` ends all of its programs at once; so does the end of this process, even by kill -9."""

    def __init__(self, limits: Limits, disk: DiskRoom) -> None:
        loop = asyncio.get_running_loop()
        self.output = Output()
        self._limits = limits
        self._disk = disk
        self._closing = ExitStack()
        self._closing.callback(disk.close)
        self._why: str | None = None
        self._first_process: asyncio.Future[int] = loop.create_future()
        self._at_the_gate: asyncio.Future[None] = loop.create_future()
        self._gone: dict[int, asyncio.Future[None]] = {}
        self._drained: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[Ended] = loop.create_future()
        self._printed = asyncio.Event()
        self._status: int | None = None
        self._told = b""
        self._bubblewrap: subprocess.Popen[bytes] | None = None
        self._first: int | None = None
        self._reads_on: asyncio.TimerHandle | None = None
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, plan: Plan) -> Confined:
        """Start the command under its limits; call from the thread that lasts as long as the process, the event loop's.

        Raises:
            ConfinementError: The sandbox could not be set up.
        """
        confined = cls(plan.limits, DiskRoom(plan.workspace_fd))
        try:
            release = confined._spawn(plan)
            async with asyncio.timeout(START_S):
                pid = await confined._set_up(release)
        except TimeoutError as error:
            confined._abandon()
            raise ConfinementError(f"The sandbox was not there within {START_S:g} s.") from error
        except BaseException:
            confined._abandon()
            raise
        confined._watching = asyncio.create_task(confined._watch(pid), name="confined command")
        confined._say_go(release)
        return confined

    @property
    def running(self) -> bool:
        """Tell whether any of its programs lives."""
        return not self._ended.done()

    @property
    def ended(self) -> Ended | None:
        """How it ended, None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def news(self, wait_s: float) -> None:
        """Return when there is output to take or the command ended, at the latest after `wait_s`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self.running and not self.output.holds_any:
                    self._printed.clear()
                    await self._printed.wait()

    def kill(self, why: str = STOPPED) -> None:
        """End all of its programs; the first reason counts."""
        if self._ended.done():
            return
        self._why = self._why or why
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self._bubblewrap is not None:
            self._bubblewrap.kill()

    async def over(self) -> Ended:
        """Return how it ended, once it has; cancelling this changes nothing."""
        return await asyncio.shield(self._ended)

    async def finish(self, timeout_s: float) -> Ended:
        """Return how it ended, with nothing of it left alive: by itself, after `timeout_s`, or when this is cancelled.

        Raises:
            ConfinementError: The sandbox could not be set up.
        """
        try:
            async with asyncio.timeout(timeout_s):
                ended = await self.over()
        except TimeoutError:
            self.kill(f"it took longer than {timeout_s:g} s")
            ended = await self.over()
        except asyncio.CancelledError:
            self.kill()
            await self.over()
            raise
        if not ended.set_up:
            raise ConfinementError(ended.why)
        return ended

    def _spawn(self, plan: Plan) -> int:
        """Start bubblewrap; it waits for a byte on the returned descriptor, and the gate behind it for one more."""
        with ExitStack() as given:
            told, tells = self._pipe(given, readable=True)
            printed, prints = self._pipe(given, readable=True)
            released, release = self._pipe(given, readable=False)
            with suppress(OSError):  # a wish: less waking up, where the account may have such pipes
                fcntl.fcntl(printed, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            files = {name: in_memory(given, name, content) for name, content in plan.files.items()}
            options = plan.options(files)
            options = [*options, "--json-status-fd", str(tells), "--block-fd", str(released)]
            listed = in_memory(given, "options", b"\0".join(map(os.fsencode, options)) + b"\0")
            # Options in a file: nobody on this machine reads the environment in a list of processes.
            self._bubblewrap = subprocess.Popen(  # noqa: S603 - our own program, with a list of arguments
                [plan.program, "--args", str(listed), "--", *_GATE, *plan.command],
                stdin=released,
                stdout=prints,
                stderr=prints,
                env={},
                cwd="/",
                umask=0o022,
                start_new_session=True,
                pass_fds=(tells, released, listed, *files.values(), *plan.descriptors),
            )
        self._watch_end(os.pidfd_open(self._bubblewrap.pid))
        self._when_readable(told, self._hear)
        self._when_readable(printed, self._read)
        return release

    def _pipe(self, given: ExitStack, *, readable: bool) -> tuple[int, int]:
        """Return a pipe of which one end is ours until the end, and the other is given away."""
        ends = os.pipe2(os.O_CLOEXEC)
        ours, theirs = ends if readable else reversed(ends)
        self._closing.callback(os.close, ours)
        given.callback(os.close, theirs)
        if readable:
            os.set_blocking(ours, False)
        return ends

    def _when_readable(self, fd: int, call: Callable[[int], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, call, fd)
        self._closing.callback(loop.remove_reader, fd)

    def _watch_end(self, pidfd: int) -> None:
        self._closing.callback(os.close, pidfd)
        self._gone[pidfd] = asyncio.get_running_loop().create_future()
        self._when_readable(pidfd, self._one_is_gone)

    def _one_is_gone(self, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        self._gone[pidfd].set_result(None)

    def _hear(self, fd: int) -> None:
        """Take what bubblewrap tells of itself: the first process of the sandbox, then the status it ended with."""
        try:
            data = os.read(fd, LARGE_READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            asyncio.get_running_loop().remove_reader(fd)
            return
        *lines, self._told = (self._told + data).split(b"\n")
        for line in lines:
            told = _parsed(line)
            if "child-pid" in told and not self._first_process.done():
                self._first_process.set_result(told["child-pid"])
            self._status = told.get("exit-code", self._status)

    def _read(self, fd: int) -> None:
        loop = asyncio.get_running_loop()
        try:
            data = os.read(fd, PIPE_BYTES)
        except BlockingIOError:
            return
        if not self._at_the_gate.done() and data.startswith(_AT_THE_GATE):
            self._at_the_gate.set_result(None)
            data = data[len(_AT_THE_GATE) :]
            if not data:
                return
        self.output.add(data)
        self._printed.set()
        if not data:
            loop.remove_reader(fd)
            self._drained.set_result(None)
        elif len(data) >= LARGE_READ_BYTES:
            loop.remove_reader(fd)
            self._reads_on = loop.call_later(len(data) / READ_BYTES_PER_S, loop.add_reader, fd, self._read, fd)

    async def _set_up(self, release: int) -> int:
        """Return the sandbox's first process, bounded and tied to us; the command waits at the gate."""
        over = asyncio.gather(*self._gone.values(), self._drained)
        if await _before(self._first_process, over):
            pid = self._first_process.result()
            with suppress(ProcessLookupError):
                self._limit(pid)
                if os.geteuid() == 0:
                    await self._limit_root(pid)
                self._say_go(release)
                if await _before(self._at_the_gate, over):
                    # It ties itself to bubblewrap, then takes the filter; by now it nearly always has.
                    while not (over.done() or _is_filtered(pid)):  # noqa: ASYNC110 - the kernel tells nobody
                        await asyncio.sleep(TIE_POLL_S)
                return pid
            await over
        raise ConfinementError(self._complaint())

    @staticmethod
    def _say_go(release: int) -> None:
        with suppress(BrokenPipeError):  # it could not be set up; its end says why
            os.write(release, b"\n")

    def _limit(self, pid: int) -> None:
        """Bound the first process of the sandbox, whose bounds all others inherit; it waits for us meanwhile."""
        self._first = os.pidfd_open(pid)
        self._watch_end(self._first)
        limits = self._limits
        for kind, most in (
            (resource.RLIMIT_NPROC, limits.processes),
            (resource.RLIMIT_DATA, limits.memory_bytes),
            (resource.RLIMIT_AS, limits.address_space_bytes),
            (resource.RLIMIT_FSIZE, limits.file_bytes),
            (resource.RLIMIT_NOFILE, limits.open_files),
            (resource.RLIMIT_CPU, limits.cpu_s),
            (resource.RLIMIT_CORE, 0),
        ):
            _, highest = resource.prlimit(pid, kind)
            value = most if highest == resource.RLIM_INFINITY else min(most, highest)
            resource.prlimit(pid, kind, (value, value))
        os.setpriority(os.PRIO_PROCESS, pid, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))
        with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w", encoding="ascii") as file:
            file.write(OOM_SCORE)  # advice to the kernel; some containers do not let us give it

    async def _limit_root(self, pid: int) -> None:
        group = await asyncio.to_thread(cgroup.bounded, pid, self._limits.processes)
        if group is not None:
            self._closing.callback(group.remove)

    async def _watch(self, pid: int) -> None:
        census = Census(pid)
        self._closing.callback(census.close)
        everything = asyncio.gather(*self._gone.values(), self._drained)
        while not everything.done():
            await asyncio.wait([everything], timeout=CENSUS_S)
            if not everything.done() and self._why is None:
                await self._look(census)
        self._close()

    async def _look(self, census: Census) -> None:
        limits = self._limits
        count = census.take(limits.processes)
        if count.processes > limits.processes:
            self.kill(f"it ran more than {limits.processes} programs at once")
        elif (
            count.memory_bytes > limits.memory_bytes
            and await asyncio.to_thread(census.memory_bytes, limits.processes) > limits.memory_bytes
        ):
            self.kill(f"it used more than {limits.memory_bytes >> 20} MiB of memory")
        elif (short := await asyncio.to_thread(self._disk.problem)) is not None:
            self.kill(short)

    def _close(self) -> None:
        assert self._bubblewrap is not None
        self._bubblewrap.wait()
        self._let_go()
        self._printed.set()
        if self._why is not None:
            self._ended.set_result(Ended(None, self._why))
        elif self._status is None:
            self._ended.set_result(Ended(None, self._complaint(), set_up=False))
        else:
            self._ended.set_result(Ended(self._status))

    def _abandon(self) -> None:
        """End what was begun; it has run nothing yet, so that its end need not be waited for long."""
        self.kill()
        if self._bubblewrap is not None:
            self._bubblewrap.wait()
        self._let_go()
        self._ended.cancel()
        self._first_process.cancel()
        self._at_the_gate.cancel()

    def _let_go(self) -> None:
        if self._reads_on is not None:
            self._reads_on.cancel()
        self._closing.close()

    def _complaint(self) -> str:
        said = one_line(self.output.take().head.removeprefix("bwrap: "), 300)
        return f"The sandbox could not be set up: {said or 'bubblewrap ended without a word'}"


async def _before(awaited: asyncio.Future[Any], over: asyncio.Future[Any]) -> bool:
    """Wait for either and tell whether the first one came."""
    await asyncio.wait([awaited, over], return_when=asyncio.FIRST_COMPLETED)
    return awaited.done()


def _is_filtered(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # it is gone, and its end says why
    return _FILTERED.search(status) is not None


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        told = json.loads(line)
    except MalformedJsonError:
        return {}
    return told if isinstance(told, dict) else {}
