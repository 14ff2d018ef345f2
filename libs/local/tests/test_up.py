"""`up`, `down`, `status` over real databases and a real bus: found healthy, refused twice, gone without a trace."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_kit.remedies import connect_a_model
from popagent_local.credentials import Credentials
from popagent_local.down import down
from popagent_local.infrastructure import with_login
from popagent_local.output import Terminal
from popagent_local.ports import is_free
from popagent_local.programs import Program, http_status
from popagent_local.settings import LocalSettings
from popagent_local.state import AlreadyRunningError, HomeLock, SuiteState, is_held
from popagent_local.status import status
from popagent_local.up import Suite, up_detached

STANDINS = Path(__file__).with_name("standins.py")
COMMAND = [sys.executable, str(STANDINS)]
PROGRAMS = {"postgres", "postgres-traces", "nats", "gateway", "chat"}


@pytest.fixture(scope="module")
def module_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def home(module_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One home for all tests of this module, so that its databases are made once; nothing runs on it at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in list(os.environ):
        if name.startswith("POPAGENT_") or name in {"DATABASE_URL", "OBSERVABILITY_DATABASE_URL", "NATS_URL"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("POPAGENT_HOME", str(module_home))
    monkeypatch.setenv("POPAGENT_PORT", str(port))
    monkeypatch.setenv("POPAGENT_WORKSPACE_ROOT", str(module_home / "workspace"))
    monkeypatch.setenv("POPAGENT_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("POPAGENT_MODEL_KEY", "model-key-of-the-user")
    monkeypatch.setenv("POPAGENT_API_KEY", "door-key-of-the-user")
    yield module_home
    down(module_home)


def running(home: Path) -> SuiteState:
    state = SuiteState.read(home)
    assert state is not None
    return state


def processes(state: SuiteState) -> list[psutil.Process]:
    found = []
    for row in state.programs.values():
        assert row.pid is not None
        process = psutil.Process(row.pid)
        found += [process, *process.children(recursive=True)]
    return found


def names_it(home: Path) -> list[psutil.Process]:
    """Every process of this machine that has the home among its arguments."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(home) in argument for argument in process.cmdline()):
                found.append(process)
    return found


def environment_of(state: SuiteState, name: str) -> dict[str, str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{state.programs[name].port}/environment", timeout=5) as answer:
        found: dict[str, str] = json.loads(answer.read())
    return found


def until_ready(home: Path, process: subprocess.Popen[str]) -> SuiteState:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None
        state = SuiteState.read(home)
        if state is not None and state.phase == "ready" and is_held(home):
            return state
        time.sleep(0.05)
    raise AssertionError("not ready within 60 s")


async def test_detached_it_is_healthy_knows_its_place_and_is_gone_after_down(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = up_detached(COMMAND)
    view = await status(home)
    state = running(home)
    with pytest.raises(AlreadyRunningError, match=rf"process {state.pid}"):
        up_detached(COMMAND)
    secret = Credentials(home).role("chat")
    chat = await asyncpg.connect(environment_of(state, "chat")["POPAGENT_CHAT_DATABASE_URL"])
    role = await chat.fetchval("select current_user::text")
    await chat.close()
    family = processes(state)
    stopped = down(home)

    assert (code, view.well, set(view.healthy)) == (0, True, PROGRAMS)
    assert (home / "workspace" / "default" / "README.md").exists()
    assert (role, stopped) == ("popagent_chat", True)
    assert state.address == f"http://127.0.0.1:{os.environ['POPAGENT_PORT']}"
    assert not [process for process in family if process.is_running()]
    assert not is_held(home)
    printed = capfd.readouterr().out
    assert all(word in printed for word in (state.address, "chat", "logs", "stop"))
    assert secret not in printed


def test_each_service_is_told_its_own_secrets_and_no_others(home: Path) -> None:
    up_detached(COMMAND)
    state = running(home)

    gateway, chat = environment_of(state, "gateway"), environment_of(state, "chat")

    assert gateway["POPAGENT_API_KEY"] == "door-key-of-the-user"
    assert (chat["POPAGENT_MODEL_KEY"], chat["POPAGENT_SECRET_KEY"]) == (
        "model-key-of-the-user",
        Credentials(home).secret_key(),
    )
    assert chat["POPAGENT_BOOT_ID"] == gateway["POPAGENT_BOOT_ID"] == state.boot_id
    foreign = {"POPAGENT_API_KEY", "POPAGENT_GATEWAY_DATABASE_URL", "POPAGENT_GATEWAY_NATS_URL", "DATABASE_URL"}
    assert not foreign & set(chat)
    assert not {"POPAGENT_MODEL_KEY", "POPAGENT_MODEL_URL", "POPAGENT_SECRET_KEY"} & set(gateway)


def test_without_a_model_it_starts_and_says_how_to_get_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POPAGENT_MODEL_URL", "")
    monkeypatch.setenv("POPAGENT_CACHE", str(tmp_path))

    code = up_detached(COMMAND)

    assert code == 0
    assert f"no model, the embedded one's weights are not here: {connect_a_model()}" in capfd.readouterr().out


def test_kill_9_leaves_no_process_and_no_lock_and_the_next_up_takes_the_same_ports(home: Path) -> None:
    up_detached(COMMAND)
    before = running(home)
    family = processes(before)

    os.kill(before.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_held(home) and time.monotonic() < deadline:
        time.sleep(0.001)
    code = up_detached(COMMAND)
    after = running(home)
    _, alive = psutil.wait_procs(family, timeout=10)

    assert (code, after.ports) == (0, before.ports)
    assert after.boot_id != before.boot_id
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(("phase", "afterwards"), [("starting", "failed"), ("ready", "stopped")])
def test_ctrl_c_leaves_no_process_and_no_lock(home: Path, phase: str, afterwards: str) -> None:
    terminal = subprocess.Popen(COMMAND, stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not is_held(home) or running(home).phase != phase or not names_it(home):
        assert terminal.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    family = [psutil.Process(terminal.pid), *names_it(home)]

    os.killpg(terminal.pid, signal.SIGINT)  # everybody in the foreground hears it, as from a keyboard
    code = terminal.wait(60)

    assert code == 0
    assert not [process for process in family if process.is_running()]
    assert names_it(home) == []
    assert not is_held(home)
    assert running(home).phase == afterwards


def test_it_ends_with_the_make_that_started_it(home: Path) -> None:
    make = subprocess.Popen(
        ["bash", "-c", f"{sys.executable} {STANDINS} --parent $$ & wait"], stdout=subprocess.PIPE, text=True
    )
    state = until_ready(home, make)
    family = [psutil.Process(state.pid), *processes(state)]

    make.kill()
    _, alive = psutil.wait_procs(family, timeout=30)
    make.communicate()

    assert not alive
    assert not is_held(home)
    assert running(home).phase == "stopped"


def test_a_killed_database_comes_back_by_itself(home: Path) -> None:
    up_detached(COMMAND)
    killed = running(home).programs["postgres"].pid
    assert killed is not None

    os.kill(killed, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        row = running(home).programs["postgres"]
        if row.pid not in {None, killed} and row.state == "ready":
            break
        time.sleep(0.05)

    assert asyncio.run(status(home)).well
    assert running(home).programs["postgres"].restarts >= 1


def test_a_taken_door_gives_another_and_says_so(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(os.environ["POPAGENT_PORT"])))
        other.listen(1)
        up_detached(COMMAND)
        address = running(home).address

    assert not address.endswith(f":{os.environ['POPAGENT_PORT']}")
    printed = capfd.readouterr().out
    assert f"port {os.environ['POPAGENT_PORT']} is taken" in printed
    assert address in printed


def test_a_start_that_fails_says_why_and_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", with_login("postgresql://127.0.0.1:9/popagent", "admin", "hunter2"))

    code = up_detached(COMMAND)

    printed = capfd.readouterr().out
    assert code == 1
    assert "popagent did not start" in printed
    assert "hunter2" not in printed
    assert not is_held(home)
    assert running(home).phase == "failed"
    assert all(row.pid is None for row in running(home).programs.values())


async def test_a_defect_of_ours_stops_what_was_started_and_the_state_says_so(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> list[Program]:
        raise RuntimeError("nobody thought of this")

    with HomeLock(home):
        code = await Suite(home, LocalSettings.load(), Terminal(io.StringIO()), broken).run()

    assert code == 1
    assert (running(home).phase, running(home).error) == ("failed", "RuntimeError: nobody thought of this")
    assert all((row.pid, row.state) == (None, "stopped") for row in running(home).programs.values())
    assert "nobody thought of this" in caplog.text


@pytest.mark.parametrize(
    ("host", "asked", "shown"),
    [("0.0.0.0", "127.0.0.1", "127.0.0.1"), ("::", "::1", "[::1]"), ("[::1]", "::1", "[::1]")],
)
def test_a_door_that_listens_everywhere_is_asked_on_loopback(
    home: Path, monkeypatch: pytest.MonkeyPatch, host: str, asked: str, shown: str
) -> None:
    monkeypatch.setenv("POPAGENT_HOST", host)
    if ":" in host and not is_free(0, "::1"):
        pytest.skip("this machine has no IPv6")
    suite = Suite(home, LocalSettings.load(), Terminal(io.StringIO()))

    at, port = suite._door()

    assert (at, suite.state.address) == (asked, f"http://{shown}:{port}")


async def test_a_door_on_ipv6_is_asked_by_its_name_in_brackets() -> None:
    if not is_free(0, "::1"):
        pytest.skip("this machine has no IPv6")
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "::1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        status_code = await http_status(port, "/api/health", "::1")

    assert status_code == 200
    assert f"Host: [::1]:{port}\r\n".encode() in heard[0]


def test_a_server_on_another_machine_needs_tls(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NATS_URL", "nats://user:hunter2@nats.example.org:4222")

    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "NATS_URL: nats.example.org is another machine; use tls://" in done.stdout
    assert "hunter2" not in done.stdout


def test_down_with_nothing_running_says_so(home: Path) -> None:
    assert down(home) is False
    with HomeLock(home), pytest.raises(AppError, match="not said its name"):
        down(home, timeout_s=0.1)
