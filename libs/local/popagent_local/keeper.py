"""Keeps one program running: start, lines, readiness, restart with back-off, stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import Callable
from typing import Final

from popagent_kit import tasks
from popagent_kit.clock import now, wire_time
from popagent_kit.errors import AppError
from popagent_local.output import ALARMING, LogFile, Terminal
from popagent_local.programs import Program
from popagent_local.state import ProgramState

log = logging.getLogger(__name__)

READY_POLL_S: Final = 0.04
MAX_LINE_BYTES: Final = 64 * 1024
# So many of its last lines tell why a program did not start.
KEPT_LINES: Final = 20
# The n-th failure in a row waits BACKOFF_S[n]; the last one for ever after, so that what comes back is found again.
BACKOFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
STABLE_S: Final = 60.0
FAILING_AFTER: Final = 4
# So often in a row a ready program may leave the question whether it lives unanswered, and so long a hung one may take
# to end when it is asked to.
MISSES: Final = 3
HUNG_STOP_S: Final = 10.0


class StartError(AppError):
    """A program did not start; the message holds the end of its log."""

    code = "start_failed"


class Keeper:
    """One program, from `start` to `stop`; it never gives up by itself, it only waits longer."""

    def __init__(
        self,
        program: Program,
        *,
        log_file: LogFile,
        terminal: Terminal,
        state: ProgramState,
        changed: Callable[[], None],
        backoff_s: tuple[float, ...] = BACKOFF_S,
    ) -> None:
        self.program = program
        self.log_file = log_file
        self.terminal = terminal
        self.state = state
        self.changed = changed
        self.backoff_s = backoff_s
        self.ready = asyncio.Event()
        self.failures = 0
        self.misses = 0
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self._ended_once = asyncio.Event()
        self._stopping = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start, and return when the program is ready.

        Raises:
            StartError: It ended before, or was not ready within its time. It is tried again all the same.
        """
        self._task = asyncio.create_task(self._keep(), name=f"keep {self.program.name}")
        waits = [asyncio.create_task(event.wait()) for event in (self.ready, self._ended_once, self._stopping)]
        try:
            await asyncio.wait(waits, timeout=self.program.start_timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if not self.ready.is_set() and not self._stopping.is_set():
            reason = self.state.detail or f"was not ready after {self.program.start_timeout_s:.0f} s"
            raise StartError(f"{self.program.name} {reason}\n{self.last_lines(KEPT_LINES)}")

    async def stop(self) -> None:
        """Ask the program to end, wait, and kill it when its time is over."""
        self._stopping.set()
        if self._task is None:
            return
        self._signal(self.program.stop_signal)
        done, _ = await asyncio.wait([self._task], timeout=self.program.stop_timeout_s)
        if not done:
            self.terminal.warn(f"{self.program.name} did not end within {self.program.stop_timeout_s:.0f} s: killed")
            self._kill_group()
            await asyncio.wait([self._task])
        self.log_file.close()

    def kill(self) -> None:
        """End the program now, without waiting."""
        self._stopping.set()
        self._signal(self.program.kill_signal)

    async def look(self) -> None:
        """Ask a ready program whether it lives, and end one that hangs, so that it is started again."""
        process = self._process
        if self.program.lives is None or process is None or not self.ready.is_set() or self._stopping.is_set():
            return
        lives = await self.program.lives()
        if process is not self._process or process.returncode is not None:  # it ended while we asked
            return
        self.misses = 0 if lives else self.misses + 1
        if self.misses < MISSES:
            return
        self.terminal.warn(f"{self.program.name} runs and does not answer: ended, so that it is started again")
        self._signal(self.program.stop_signal)
        try:
            async with asyncio.timeout(HUNG_STOP_S):
                await process.wait()
        except TimeoutError:
            if process is self._process:
                self._kill_group()

    def last_lines(self, count: int) -> str:
        """Return the end of what it has said since `start`, indented; its log also holds what it said before that."""
        return "\n".join(f"    {line}" for line in [*self._said][-count:])

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            began = loop.time()
            try:
                reason = await self._run_once()
            except Exception as error:
                log.exception("%s could not be watched", self.program.name)
                self._kill_group()
                reason = f"could not be watched: {error!r}"
            if self._stopping.is_set():
                break
            self.failures = 1 if loop.time() - began > STABLE_S else self.failures + 1
            delay_s = self.backoff_s[min(self.failures, len(self.backoff_s)) - 1]
            self._update("failing" if self.failures >= FAILING_AFTER else "restarting", reason)
            self._ended_once.set()
            self._report(reason, delay_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay_s)
            self.state.restarts += 1
        self._update("stopped", self.state.detail)

    async def _run_once(self) -> str:
        """Run the program to its end and say how it ended."""
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.program.command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(self.program.env) or None,
                start_new_session=True,  # a Ctrl-C in the terminal is ours to pass on, also in its first moments
            )
        except (AppError, OSError) as error:
            return f"could not be started: {error}"
        process = self._process
        self.misses = 0
        self.state.pid, self.state.since = process.pid, wire_time(now())
        self._update("starting", "")
        if self._stopping.is_set():  # the order to stop came while it was being started
            self._signal(self.program.stop_signal)
        lines = asyncio.create_task(self._copy_lines(process))
        probe = tasks.lasting(self._watch_ready, f"readiness of {self.program.name}")
        code = await process.wait()
        probe.cancel()
        self.ready.clear()
        self._kill_group()  # what it started and left behind
        await asyncio.wait([lines], timeout=2.0)
        lines.cancel()
        self.state.pid = None
        return _how(code)

    async def _watch_ready(self) -> None:
        while not await self.program.ready():  # noqa: ASYNC110 (the program is another process)
            await asyncio.sleep(READY_POLL_S)
        self.ready.set()
        self._update("ready", "")

    async def _copy_lines(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        while chunk := await process.stdout.read(MAX_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._write(line)
        if rest:
            self._write(rest)

    def _write(self, line: bytes) -> None:
        try:
            self.log_file.write(line + b"\n")
        except OSError as error:  # a full disk must not stop the suite from telling so
            self.terminal.warn(f"{self.log_file.path}: {error}")
        text = line.decode("utf-8", "replace").rstrip("\r")
        self._said.append(text)
        if not self.program.quiet or ALARMING.search(text):
            self.terminal.line(self.program.name, text)

    def _update(self, state: str, detail: str) -> None:
        self.state.state, self.state.detail = state, detail
        self.changed()

    def _report(self, reason: str, delay_s: float) -> None:
        if self.failures < FAILING_AFTER:
            self.terminal.warn(f"{self.program.name} {reason}; started again in {delay_s:g} s")
        else:
            self.terminal.warn(
                f"{self.program.name} {reason}, {self.failures} times in a row; next try in {delay_s:g} s."
                f" The end of {self.log_file.path}:\n{self.last_lines(8)}"
            )

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
                self._process.send_signal(signal.SIGCONT)  # a frozen program cannot obey

    def _kill_group(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _how(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
