"""`popagent up`: everything, in order, in the foreground; or detached, once it is healthy."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from popagent_kit import remedies, tasks
from popagent_kit.clock import now, wire_time
from popagent_kit.errors import AppError
from popagent_kit.exec_shim import die_with_parent
from popagent_kit.ids import new_id
from popagent_kit.settings import command, home_folder, reveal
from popagent_local import default_workspace
from popagent_local.infrastructure import CLUSTERS, PROGRAM_NAMES, Infrastructure, Ports, resolve
from popagent_local.keeper import StartError
from popagent_local.output import Terminal, tail
from popagent_local.ports import LOOPBACK, free_port
from popagent_local.postgres import EmbeddedPostgres
from popagent_local.programs import Program, http_status, in_url, run_once, together
from popagent_local.services import (
    MODEL_SERVER,
    SuiteValues,
    model_server_program,
    service_programs,
    suite_values,
)
from popagent_local.settings import LocalSettings, workspace_root
from popagent_local.state import AlreadyRunningError, HomeLock, SuiteState, describe_holder, is_held, private_folder
from popagent_local.supervisor import StopRequested, Supervisor

LEFTOVER_WAIT_S: Final = 20.0
HEALTH_WAIT_S: Final = 60.0
INCOMPLETE_WAIT_S: Final = 5.0
SUPERVISE: Final = (sys.executable, "-m", "popagent_local", "up", "--quiet")
DETACHED_LOG: Final = "supervisor.log"
# Where a server that listens on every address is reached from here.
REACHED: Final = {"0.0.0.0": LOOPBACK, "::": "::1"}  # noqa: S104 (compared)
log = logging.getLogger(__name__)


ServicePrograms = Callable[[SuiteValues, Infrastructure, Callable[[str], int]], list[Program]]


class Suite:
    """One run of everything for one home; its lock is held already."""

    def __init__(
        self, home: Path, settings: LocalSettings, terminal: Terminal, services: ServicePrograms = service_programs
    ) -> None:
        last = SuiteState.read(home)
        self.home = home
        self.settings = settings
        self.terminal = terminal
        self.services = services
        self.state = SuiteState(
            home=str(home), pid=os.getpid(), since=wire_time(now()), boot_id=new_id(), ports=last.ports if last else {}
        )
        self.ports = Ports(self.state.ports)
        self.supervisor = Supervisor(home, self.state, terminal)
        self._background: list[asyncio.Task[None]] = []
        private_folder(home / "logs")

    async def run(self) -> int:
        """Start, serve until told to stop, stop; return the exit code."""
        self.supervisor.listen_to_signals()
        self.terminal.starting = True
        self._in_background(self.supervisor.watch_lives, "the watch over programs")
        self.supervisor.phase("starting")
        code, error = 1, "it was cut off"
        try:
            await self._start()
            self.terminal.starting = False
            self.supervisor.phase("ready")
            await self.supervisor.stop_requested.wait()
            code, error = 0, ""
        except StopRequested:
            code, error = 0, "stopped while it was starting"
        except (AppError, OSError) as failure:
            error = self._tell_failure(str(failure))
        except Exception as failure:
            log.exception("popagent failed by a defect of ours")
            error = self._tell_failure(f"{type(failure).__name__}: {failure}")
        finally:
            await self._stop(error)
        return code

    def _tell_failure(self, reason: str) -> str:
        self.terminal.say(f"\n{self.terminal.paint('popagent did not start', 31)}: {reason}\n")
        return reason

    async def _start(self) -> None:
        began = time.monotonic()
        self.terminal.say(f"popagent · {self.home}")
        infrastructure = resolve(self.home, self.settings, self.ports.take)
        model_port = self._start_model_server(infrastructure)
        await self._start_servers(infrastructure)
        await self._prepare(infrastructure)
        await self._make_workspace()
        host, port = self._door()
        values = suite_values(
            self.settings,
            infrastructure.credentials,
            boot_id=self.state.boot_id,
            port=port,
            model_port=model_port,
        )
        programs = self.services(values, infrastructure, self.ports.take)
        async with self._step("services", f"{len(programs)} of them"):
            failures = await self.supervisor.start(*programs)
            for failure in failures:
                self.terminal.warn(f"{failure}\n    It is tried again; the others work without it.")
            await self.supervisor.unless_stopped(self._until_healthy(host, port, complete=not failures))
        self._tell_ready(time.monotonic() - began)

    def _start_model_server(self, infrastructure: Infrastructure) -> int | None:
        """Start the embedded model in the background unless an endpoint was given; return its port when it runs."""
        if self.settings.model_url:
            return None
        from popagent_local.model_server import weights  # noqa: PLC0415 (only where no endpoint was given)

        if weights.paths() is None:
            self.terminal.warn(f"no model, the embedded one's weights are not here: {remedies.connect_a_model()}")
            return None
        port = self.ports.take(MODEL_SERVER)
        keeper = self.supervisor.launch(model_server_program(infrastructure.credentials, port))

        async def report() -> None:
            began = time.monotonic()
            try:
                await keeper.start()
            except StartError as error:
                self.terminal.warn(f"{error}\n    Chat answers once it runs; it is tried again.")
            except Exception:
                log.exception("the start of the model server is not known")
            else:
                self.terminal.done("model", f"{LOOPBACK}:{port}", time.monotonic() - began)

        self._background.append(asyncio.create_task(report(), name="start of the model server"))
        return port

    def _in_background(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._background.append(tasks.lasting(work, name))

    async def _start_servers(self, infrastructure: Infrastructure) -> None:
        if not (infrastructure.postgres or infrastructure.nats):
            return
        async with self._step("PostgreSQL and NATS", "embedded"):
            servers = infrastructure.postgres
            # What the next step needs takes as long to load as the servers take to start.
            loading = asyncio.create_task(asyncio.to_thread(importlib.import_module, "popagent_local.bootstrap"))
            await self.supervisor.unless_stopped(self._until_leftovers_are_gone(infrastructure))
            new = [cluster for cluster in CLUSTERS if cluster in servers and not servers[cluster].initialised]
            if new:
                self.terminal.began("creating the databases (once)")
                work = together(*(self._initialise(PROGRAM_NAMES[name], servers[name]) for name in new))
                await self.supervisor.unless_stopped(work)
            await self.supervisor.start(*infrastructure.programs())
            await loading

    async def _initialise(self, name: str, server: EmbeddedPostgres) -> None:
        log_file = self.home / "logs" / f"{name}.log"
        code = await run_once(server.init_command(), log_file)
        if code != 0:
            lines = "\n".join(f"    {line}" for line in tail(log_file, 20))
            raise StartError(f"initdb of {name} ended with exit code {code}\n{lines}")
        server.adopt()

    async def _until_leftovers_are_gone(self, infrastructure: Infrastructure) -> None:
        """After a kill -9 of the last supervisor its databases need a moment to shut down."""
        deadline = time.monotonic() + LEFTOVER_WAIT_S
        while time.monotonic() < deadline:
            nats = infrastructure.nats
            busy = [server for server in infrastructure.postgres.values() if server.running()]
            if not busy and not (nats and nats.running()):
                return
            await asyncio.sleep(0.1)
        # What still runs is named by its start_command.

    async def _prepare(self, infrastructure: Infrastructure) -> None:
        async with self._step("schemas and streams", "") as detail:
            from popagent_local import bootstrap  # noqa: PLC0415 (loaded while the servers started)

            done = await self.supervisor.unless_stopped(bootstrap.prepare(infrastructure))
            detail.append(f"{len(done.migrations)} migrations" if done.migrations else "up to date")
            self._in_background(lambda: bootstrap.guard_streams(infrastructure), "the guard of the streams")
        for name in done.missing_extensions:
            self.terminal.warn(f"PostgreSQL has no extension {name}")

    async def _make_workspace(self) -> None:
        root = workspace_root(self.home)
        began = time.monotonic()
        made_from = await self.supervisor.unless_stopped(asyncio.to_thread(default_workspace.make, root))
        if made_from is not None:
            self.terminal.done("default workspace", made_from, time.monotonic() - began)

    def _door(self) -> tuple[str, int]:
        """Choose the gateway's port: the configured one, else the one of last time, else any."""
        wanted = self.settings.port
        host = self.settings.host.strip("[]")
        port = free_port(wanted or self.state.ports.get("door"), host)
        if wanted and port != wanted:
            port = free_port(self.state.ports.get("door"), host)
            self.terminal.warn(f"port {wanted} is taken; popagent listens on {port} instead (POPAGENT_PORT)")
        self.state.ports["door"] = port
        shown = REACHED.get(host, host)
        self.state.address = f"http://{in_url(shown)}:{port}"
        return shown, port

    async def _until_healthy(self, host: str, port: int, *, complete: bool) -> None:
        """Wait for the door to call the suite healthy; an incomplete one gets little time and only a warning."""
        key = reveal(self.settings.api_key)
        headers = {"x-popagent-key": key} if key else {}
        wait_s = HEALTH_WAIT_S if complete else INCOMPLETE_WAIT_S
        deadline = time.monotonic() + wait_s
        while (status := await http_status(port, "/api/health", host, headers=headers)) != 200:
            if time.monotonic() > deadline:
                answered = f"answers {status}" if status else "does not answer"
                trouble = f"{self.state.address}/api/health {answered} after {wait_s:.0f} s"
                if complete:
                    raise StartError(trouble)
                self.terminal.warn(trouble)
                return
            await asyncio.sleep(0.05)

    def _tell_ready(self, seconds: float) -> None:
        say, paint = self.terminal.say, self.terminal.paint
        say(f"\n{paint('popagent is up', 32)} after {seconds:.1f} s: {paint(self.state.address, 1)}")
        question = 'chat "What does this project do? Read the README."'
        say(f"  chat   {command(question)}")
        say(f"  logs   {command('logs -f')}      files in {self.home / 'logs'}")
        say(f"  stop   {'Ctrl-C, or ' if self.terminal.follow else ''}{command('down')}\n")

    async def _stop(self, error: str) -> None:
        self.terminal.starting = False
        self.supervisor.phase("stopping", error)
        if self.supervisor.stop_requested.is_set():
            self.terminal.say("\nstopping; once more to kill")
        self.supervisor.stop_requested.set()
        for task in self._background:
            task.cancel()
        await self.supervisor.stop_all()
        await tasks.end(*self._background)
        self.supervisor.phase("failed" if error else "stopped", error)
        self.terminal.say("stopped")

    @contextlib.asynccontextmanager
    async def _step(self, what: str, detail: str) -> AsyncIterator[list[str]]:
        began = time.monotonic()
        said = [detail] if detail else []
        yield said
        self.terminal.done(what, " ".join(said), time.monotonic() - began)


def up(*, follow: bool = True, parent: int | None = None, services: ServicePrograms = service_programs) -> int:
    """Run everything until told to stop, or until `parent` ends; return the exit code.

    Raises:
        AlreadyRunningError: Another supervisor holds this home.
    """
    if parent is not None:  # make, which would otherwise leave us behind when it is killed
        die_with_parent(signal.SIGTERM, parent)
    home = home_folder()
    settings = LocalSettings.load()
    with HomeLock(home):
        return asyncio.run(Suite(home, settings, Terminal(follow=follow), services).run())


def up_detached(program: Sequence[str] = SUPERVISE) -> int:
    """Start the supervisor as a process of its own and return 0 when it is healthy, else its exit code.

    Raises:
        AlreadyRunningError: Another supervisor holds this home.
    """
    home = home_folder()
    LocalSettings.load()
    if is_held(home):
        raise AlreadyRunningError(describe_holder(home))
    log_file = private_folder(home / "logs") / DETACHED_LOG
    if log_file.exists():
        shutil.move(log_file, log_file.with_suffix(".log.1"))
    with log_file.open("ab") as log:
        child = subprocess.Popen(
            program,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    with log_file.open("r", encoding="utf-8", errors="replace") as reader:
        while True:
            code = child.poll()
            sys.stdout.write(reader.read())
            sys.stdout.flush()
            if code is not None:
                return code or 1
            state = SuiteState.read(home)
            if state is not None and state.pid == child.pid and state.phase == "ready":
                sys.stdout.write(reader.read())
                return 0
            time.sleep(0.05)
