"""The real suite as processes: `with Suite(folder) as suite` is `popagent up` on free ports, for tests and benchmarks.

Every program can be killed, frozen and doubled. The model is scripted (`suite.model`) unless the embedded one is asked.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import psutil

from popagent_kit.exec_shim import shim
from popagent_kit.settings import clone_root, read_env_file
from popagent_local.infrastructure import PROGRAM_NAMES
from popagent_local.ports import free_port
from popagent_local.programs import surroundings
from popagent_local.services import GATEWAY, LOCAL_SERVICES
from popagent_local.state import ProgramState, SuiteState
from popagent_proto.matrix import BY_NAME
from popagent_testing.model_process import ModelProcess
from tests.talk import Talk

START_TIMEOUT_S: Final = 120.0
STOP_TIMEOUT_S: Final = 90.0
COMMAND_TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.02
KEY: Final = "key-of-the-test-suite"
COMMAND_LINE: Final = "from popagent_cli.main import main; main()"
POSTGRES: Final = PROGRAM_NAMES["application"]
POSTGRES_TRACES: Final = PROGRAM_NAMES["observability"]
SERVICES: Final = tuple(row.name for row in LOCAL_SERVICES)
HEALTH_VARIABLES: Final = {row.name: row.health_variable for row in LOCAL_SERVICES}
# A developer's own servers must never become the servers of a test.
FOREIGN: Final = ("DATABASE_URL", "OBSERVABILITY_DATABASE_URL", "NATS_URL")

DIRECT: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class SuiteError(RuntimeError):
    """The suite did not do what was asked; the message ends with the last lines of the log that knows why."""


class Instance:
    """One more process of a service beside the supervised one; nobody restarts it but the test."""

    def __init__(self, service: str, env: Mapping[str, str], log_file: Path) -> None:
        self.service = service
        self.env = dict(env)
        self.log_file = log_file
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; an error when it does not run."""
        assert self.process is not None, f"{self.service} does not run"
        return self.process.pid

    @property
    def base_url(self) -> str:
        """Where a second gateway listens."""
        return f"http://{self.env['POPAGENT_HOST']}:{self.env['POPAGENT_PORT']}"

    def start(self) -> Self:
        """Start the process, and return at once; call it from the main thread, whose end would end the process."""
        command = shim([sys.executable, "-X", "utf8", "-m", BY_NAME[self.service].package])
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.env
            )
        return self

    def ready(self) -> bool:
        """Tell whether `/readyz` answers 200.

        Raises:
            SuiteError: The process has ended.
        """
        if self.process is not None and self.process.poll() is not None:
            raise SuiteError(f"{self.service} ended with {self.process.returncode}\n{last_lines(self.log_file)}")
        return answers_ok(f"http://127.0.0.1:{self.env[HEALTH_VARIABLES[self.service]]}/readyz")

    def kill(self) -> None:
        """End it with kill -9."""
        self.end(signal.SIGKILL)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal and wait for the end; nothing happens when it does not run."""
        if self.process is not None:
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


class Suite:
    """One `popagent up` with a home of its own; `start` returns when everything is healthy.

    Args:
        folder: Home, workspaces and the log go below it; a second suite over the same folder is a warm start.
        env: Further variables for all programs.
        embedded_model: Let the embedded model answer instead of the scripted one.
    """

    def __init__(
        self, folder: Path, *, env: Mapping[str, str] | None = None, embedded_model: bool = False, key: str = KEY
    ) -> None:
        self.home = folder / "home"
        self.workspaces = folder / "workspaces"
        self.log_file = folder / "up.log"
        self.key = key
        self.model = ModelProcess()
        self.embedded_model = embedded_model
        self.extra = dict(env or {})
        self.instances: list[Instance] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Start everything; call it from the main thread, whose end would end the suite."""
        self.launch()
        self.wait(self._is_up, "the suite is up", START_TIMEOUT_S)
        return self

    def launch(self) -> None:
        """Start everything and return at once, for those who measure how long it takes."""
        self._prepare()
        if not self.embedded_model and not self.model.url:
            self.model.start()
        self.port = free_port(self.port or None)
        command = [sys.executable, "-m", "popagent_local", "up", "--quiet", "--with-parent", str(os.getpid())]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self.environment()
            )

    def stop(self) -> None:
        """Stop everything that was started here, by its ids; may be called twice."""
        for instance in self.instances:
            instance.end()
        self.instances.clear()
        self.stop_programs()
        self.model.stop()
        self.model.url = ""

    def stop_programs(self) -> None:
        """Stop `popagent up` in order; the scripted model stays."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()  # takes every program along
                self.process.wait()
        self.process = None

    def environment(self) -> dict[str, str]:
        """Return the environment of `popagent up`: what every program needs, and what is set here."""
        env = surroundings() | {
            "POPAGENT_HOME": str(self.home),
            "POPAGENT_PORT": str(self.port),
            "POPAGENT_API_KEY": self.key,
            "POPAGENT_WORKSPACE_ROOT": str(self.workspaces),
        }
        if "POPAGENT_CACHE" in os.environ:
            env["POPAGENT_CACHE"] = os.environ["POPAGENT_CACHE"]
        if not self.embedded_model:
            env["POPAGENT_MODEL_URL"] = self.model.url
        return env | self.extra

    # What runs

    @property
    def base_url(self) -> str:
        """Where the door is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def state(self) -> SuiteState:
        """What the supervisor wrote down last."""
        state = SuiteState.read(self.home)
        if state is None or self.process is None or state.pid != self.process.pid:
            raise SuiteError(f"the supervisor has not written its state yet\n{last_lines(self.log_file)}")
        return state

    def program(self, name: str) -> ProgramState:
        """Return the state of one program: a service, `nats`, `postgres`, `postgres-traces`."""
        return self.state.programs[name]

    def pid(self, name: str) -> int:
        """Return the process id of a program; an error while it is down."""
        pid = self.program(name).pid
        if pid is None:
            raise SuiteError(f"{name} does not run: {self.program(name).detail}")
        return pid

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return every process of the suite by program, the supervisor and their children included, the model not."""
        assert self.process is not None
        roots = {name: row.pid for name, row in self.state.programs.items() if row.pid is not None}
        doubles = ((number, each) for number, each in enumerate(self.instances, start=2) if each.process is not None)
        roots |= {f"{each.service}-{number}": each.pid for number, each in doubles}
        found = {"supervisor": [psutil.Process(self.process.pid)]}
        for name, pid in roots.items():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                found[name] = [process, *process.children(recursive=True)]
        return found

    # Bad luck

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Send a signal to a program and return the id it had."""
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def pause(self, name: str) -> None:
        """Freeze a program with its children: connections stay open, nobody answers."""
        os.killpg(os.getpgid(self.pid(name)), signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Thaw it."""
        os.killpg(os.getpgid(self.pid(name)), signal.SIGCONT)

    async def restart(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal, and return when the supervisor has another process of it ready."""
        await self.until_back(name, self.kill(name, number))

    async def until_back(self, name: str, old_pid: int, timeout_s: float = 60.0) -> None:
        """Wait until a program with another id than `old_pid` is ready."""

        def back() -> bool:
            row = self.program(name)
            return row.state == "ready" and row.pid not in (None, old_pid)

        await self.until(back, f"{name} is back", timeout_s)

    # More of the same

    def another(self, service: str) -> Instance:
        """Start a second process of a service with the environment of the first, its own ports excepted.

        It is ready when `instance.ready()` says so; a gateway listens on a port of its own.
        """
        env = psutil.Process(self.pid(service)).environ()
        env[HEALTH_VARIABLES[service]] = str(free_port())
        if service == GATEWAY:
            env["POPAGENT_PORT"] = str(free_port())
        number = sum(1 for each in self.instances if each.service == service) + 2
        instance = Instance(service, env, self.home / "logs" / f"{service}-{number}.log").start()
        self.instances.append(instance)
        return instance

    def talk(self, base_url: str | None = None) -> Talk:
        """Return a client of the door, or of a second gateway; use it with `async with`."""
        return Talk(base_url or self.base_url, self.key)

    def popagent(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the command line against this suite.

        Raises:
            SuiteError: It failed; the message holds what it said.
        """
        done = subprocess.run(
            [sys.executable, "-c", COMMAND_LINE, "--url", self.base_url, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            env=self.environment(),
        )
        if done.returncode != 0:
            raise SuiteError(f"popagent {' '.join(words)} ended with {done.returncode}\n{done.stderr}")
        return done

    def log(self, name: str) -> str:
        """Return the whole log of a program."""
        return (self.home / "logs" / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    # Waiting

    async def until(self, condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
        """Wait for something that only another process can do.

        Raises:
            SuiteError: It did not happen in time, or the supervisor ended.
        """
        deadline = time.monotonic() + timeout_s
        while not condition():
            self._check(deadline, what)
            await asyncio.sleep(POLL_S)

    def wait(self, condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
        """Do the same outside an event loop."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            self._check(deadline, what)
            time.sleep(POLL_S)

    def answers(self, path: str = "/api/health") -> bool:
        """Tell whether `GET path` gives 200."""
        return answers_ok(self.base_url + path, {"x-popagent-key": self.key})

    def _is_up(self) -> bool:
        state = SuiteState.read(self.home)
        return (
            state is not None
            and self.process is not None
            and state.pid == self.process.pid
            and (state.phase == "ready")
        )

    def _check(self, deadline: float, what: str) -> None:
        if self.process is None or self.process.poll() is not None:
            raise SuiteError(f"the suite ended before {what}\n{last_lines(self.log_file, 40)}")
        if time.monotonic() > deadline:
            raise SuiteError(f"in vain: {what}\n{last_lines(self.log_file)}")

    def _prepare(self) -> None:
        root = clone_root()
        own = read_env_file(root / ".env") if root else {}
        if foreign := [name for name in FOREIGN if own.get(name) and name not in self.extra]:
            raise SuiteError(f"{', '.join(foreign)} in {root}/.env would be used by this suite; move it away first")
        # Small and always the same; for a real model `up` makes a clone of this repository, as for a person.
        default = self.workspaces / "default"
        if not (default.exists() or self.embedded_model):
            default.mkdir(parents=True)
            (default / "README.md").write_text("# Weather station\n\nIt measures wind and rain.\n", encoding="utf-8")


def answers_ok(url: str, headers: Mapping[str, str] | None = None) -> bool:
    """Tell whether `GET url` gives 200 within two seconds."""
    try:
        with DIRECT.open(urllib.request.Request(url, headers=dict(headers or {})), timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def last_lines(file: Path, count: int = 20) -> str:
    """Return the end of a log, indented."""
    lines: Sequence[str] = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else ()
    return "\n".join(f"    {line}" for line in lines[-count:])
