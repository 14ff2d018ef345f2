"""The supervisor over tiny programs: nothing outlives it, what ends comes back, what will not start says why."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from popagent_kit import tasks
from popagent_kit.exec_shim import shim
from popagent_local import keeper as keeping
from popagent_local import supervisor as supervising
from popagent_local.keeper import StartError
from popagent_local.output import Terminal
from popagent_local.ports import free_port
from popagent_local.programs import Program, answers_ok, run_once, surroundings
from popagent_local.state import SuiteState
from popagent_local.supervisor import StopRequested, Supervisor

SLEEPER = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)"


def program(name: str, mark: Path, code: str = SLEEPER, **options: object) -> Program:
    async def ready() -> bool:
        return mark.exists() and mark.read_text() != ""

    command: Callable[[], list[str]] = lambda: shim([sys.executable, "-S", "-c", code, str(mark)])  # noqa: E731
    return Program(name, command, ready, env=surroundings(), **options)  # type: ignore[arg-type]


@pytest.fixture
def terminal() -> Terminal:
    return Terminal(io.StringIO())


@pytest.fixture
def supervisor(tmp_path: Path, terminal: Terminal) -> Supervisor:
    (tmp_path / "run").mkdir()
    return Supervisor(tmp_path, SuiteState(home=str(tmp_path)), terminal, backoff_s=(0.01, 0.02, 0.03, 0.04, 5.0))


def said(terminal: Terminal) -> str:
    assert isinstance(terminal.stream, io.StringIO)
    return terminal.stream.getvalue()


async def until(condition: Callable[[], bool], timeout_s: float = 15.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_started_program_is_ready_and_a_stopped_one_is_gone(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    await supervisor.start(program("sleeper", mark))
    pid = int(mark.read_text())
    stored = SuiteState.read(tmp_path)
    await supervisor.stop_all()

    assert stored is not None
    assert (stored.programs["sleeper"].state, stored.programs["sleeper"].pid) == ("ready", pid)
    assert not psutil.pid_exists(pid)


async def test_a_killed_program_is_started_again(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    await supervisor.start(program("sleeper", mark))
    first = int(mark.read_text())

    os.kill(first, signal.SIGKILL)
    await until(lambda: mark.read_text() not in {"", str(first)})

    second = int(mark.read_text())
    assert psutil.pid_exists(second)
    assert supervisor.state.programs["sleeper"].restarts == 1
    await supervisor.stop_all()
    assert not psutil.pid_exists(second)


async def test_a_program_that_keeps_failing_is_reported_and_waits_longer_each_time(
    supervisor: Supervisor, terminal: Terminal, tmp_path: Path
) -> None:
    broken = program("broken", tmp_path / "never", "print('no such table'); raise SystemExit(3)", essential=False)

    failures = await supervisor.start(broken)
    await until(lambda: supervisor.state.programs["broken"].state == "failing")
    await until(lambda: "4 times in a row" in said(terminal))
    restarts = supervisor.state.programs["broken"].restarts
    await supervisor.stop_all()

    assert "ended with exit code 3" in str(failures[0])
    assert "no such table" in said(terminal)
    assert restarts <= 4


async def test_an_essential_program_that_does_not_start_fails_the_start_with_its_last_lines(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    broken = program("broken", tmp_path / "never", "print('port is taken'); raise SystemExit(1)")

    with pytest.raises(StartError, match="port is taken"):
        await supervisor.start(program("sleeper", tmp_path / "mark"), broken)

    await supervisor.stop_all()
    assert all(row.state == "stopped" for row in supervisor.state.programs.values())


async def test_a_start_that_fails_does_not_tell_of_the_start_before(supervisor: Supervisor, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "broken.log").write_text("is ready\n")
    broken = program("broken", tmp_path / "never", "print('port is taken'); raise SystemExit(1)")

    with pytest.raises(StartError, match="port is taken") as failure:
        await supervisor.start(broken)

    await supervisor.stop_all()
    assert "is ready" not in str(failure.value)


async def test_an_order_to_stop_ends_a_start_that_waits(supervisor: Supervisor, tmp_path: Path) -> None:
    slow = program("slow", tmp_path / "never", "import time; time.sleep(600)")
    asyncio.get_running_loop().call_later(0.2, supervisor.stop_requested.set)

    with pytest.raises(StopRequested):
        await supervisor.start(slow)

    await supervisor.stop_all()
    assert supervisor.state.programs["slow"].pid is None


async def test_what_the_order_to_stop_broke_is_no_failure_of_the_start(supervisor: Supervisor) -> None:
    async def broken_by_the_same_ctrl_c() -> None:
        supervisor.stop_requested.set()
        raise StartError("initdb was ended by SIGINT")

    with pytest.raises(StopRequested):
        await supervisor.unless_stopped(broken_by_the_same_ctrl_c())


async def test_a_program_has_a_session_of_its_own_before_it_runs(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getsid(0) == os.getpid())); time.sleep(600)"
    bare = replace(program("bare", mark), command=lambda: [sys.executable, "-S", "-c", code, str(mark)])

    await supervisor.start(bare)
    once = await run_once(
        [sys.executable, "-S", "-c", "import os; print(os.getsid(0) == os.getpid())"], tmp_path / "log"
    )
    await supervisor.stop_all()

    assert (once, mark.read_text(), (tmp_path / "log").read_text()) == (0, "True", "True\n")


async def test_a_program_deaf_to_sigterm_is_killed_with_what_it_started(
    supervisor: Supervisor, terminal: Terminal, tmp_path: Path
) -> None:
    mark, child_mark = tmp_path / "mark", tmp_path / "child"
    code = f"""
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    open({str(child_mark)!r}, 'w').write(str(os.getpid()))
    time.sleep(600)
open(sys.argv[1], 'w').write(str(os.getpid()))
time.sleep(600)
"""
    await supervisor.start(program("deaf", mark, code, stop_timeout_s=0.3))
    await until(lambda: child_mark.exists() and child_mark.read_text() != "")

    await supervisor.stop_all()

    assert not psutil.pid_exists(int(mark.read_text()))
    await until(lambda: not _lives(int(child_mark.read_text())))
    assert "did not end within" in said(terminal)


async def test_a_second_ctrl_c_kills_what_does_not_end(supervisor: Supervisor, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], 'w').write(str(os.getpid()))
time.sleep(600)
"""
    supervisor.listen_to_signals()
    await supervisor.start(program("deaf", mark, code, stop_timeout_s=60))

    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(supervisor.stop_requested.wait(), 5)
    stopping = asyncio.create_task(supervisor.stop_all())
    os.kill(os.getpid(), signal.SIGTERM)  # a make that is told to stop passes it on: patience goes on
    await asyncio.sleep(0.2)
    patient = not stopping.done()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(stopping, 10)

    assert patient
    assert not psutil.pid_exists(int(mark.read_text()))


async def test_services_end_before_what_they_need(supervisor: Supervisor, tmp_path: Path) -> None:
    order = tmp_path / "order"
    code = f"""
import signal, sys, time, os
def end(*_):
    with open({str(order)!r}, 'a') as file: file.write(sys.argv[2] + chr(10))
    os._exit(0)
signal.signal(signal.SIGTERM, end)
open(sys.argv[1], 'w').write(str(os.getpid()))
time.sleep(600)
"""

    def named(name: str, stop_order: int) -> Program:
        mark = tmp_path / name

        async def ready() -> bool:
            return mark.exists() and mark.read_text() != ""

        def command() -> list[str]:
            return shim([sys.executable, "-S", "-c", code, str(mark), name])

        return Program(name, command, ready, env=surroundings(), stop_order=stop_order)

    await supervisor.start(named("database", 2), named("bus", 1), named("service", 0))
    await supervisor.stop_all()

    assert order.read_text().split() == ["service", "bus", "database"]


HTTP_SERVER = """
import http.server, os, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_): pass
signal.signal(signal.SIGTERM, {on_sigterm})
server = http.server.HTTPServer(("127.0.0.1", {port}), Answer)
open(sys.argv[1], "w").write(str(os.getpid()))
server.serve_forever()
"""


@pytest.mark.parametrize("on_sigterm", ["signal.SIG_DFL", "signal.SIG_IGN"])
async def test_a_program_that_runs_and_does_not_answer_is_started_again(
    supervisor: Supervisor, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_sigterm: str
) -> None:
    monkeypatch.setattr(supervising, "LIVES_EVERY_S", 0.02)
    monkeypatch.setattr(keeping, "HUNG_STOP_S", 0.2)
    mark, port = tmp_path / "mark", free_port()
    code = HTTP_SERVER.format(on_sigterm=on_sigterm, port=port)
    lives = answers_ok(port, "/livez", timeout_s=0.2)
    server = program("server", mark, code, lives=lives, stop_timeout_s=0.2)
    await supervisor.start(replace(server, ready=answers_ok(port, "/readyz")))
    first = int(mark.read_text())
    watch = asyncio.create_task(supervisor.watch_lives())
    await asyncio.sleep(0.2)  # a living one is left alone
    restarts_while_living = supervisor.state.programs["server"].restarts

    os.kill(first, signal.SIGSTOP)
    await until(lambda: mark.read_text() not in {"", str(first)})
    await until(supervisor.keepers["server"].ready.is_set)
    restarts = supervisor.state.programs["server"].restarts
    await tasks.end(watch)
    await supervisor.stop_all()

    assert (restarts_while_living, restarts) == (0, 1)
    assert "server runs and does not answer" in said(terminal)
    assert not _lives(first)


def test_kill_9_of_the_supervisor_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "suite.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import asyncio, sys
            from pathlib import Path
            sys.path.insert(0, {str(Path(__file__).parent)!r})
            from test_supervisor import program
            from popagent_local.output import Terminal
            from popagent_local.state import HomeLock, SuiteState
            from popagent_local.supervisor import Supervisor

            async def main(home):
                with HomeLock(home):
                    supervisor = Supervisor(home, SuiteState(home=str(home)), Terminal())
                    await supervisor.start(program("one", home / "one"), program("two", home / "two"))
                    print("up", flush=True)
                    await asyncio.sleep(600)

            asyncio.run(main(Path({str(tmp_path)!r})))
            """
        )
    )
    suite = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert suite.stdout is not None
    assert suite.stdout.readline() == "up\n"
    pids = [int((tmp_path / name).read_text()) for name in ("one", "two")]

    suite.kill()
    suite.wait()
    deadline = time.monotonic() + 10
    while any(_lives(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)

    assert not any(_lives(pid) for pid in pids)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_program_that_should_let_others_go_first_has_a_lower_priority() -> None:
    script = "import os; print(os.nice(0), open('/proc/self/autogroup').read())"

    done = subprocess.run(
        shim([sys.executable, "-c", script], nice=10), capture_output=True, text=True, check=True, timeout=30
    )

    nice, _, group = done.stdout.partition(" ")
    assert nice == "10"
    assert "nice 10" in group or not group.strip()
