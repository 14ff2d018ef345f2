"""Embedded PostgreSQL and NATS: half-made folders, strangers on them, ordinary users, root in its two ways."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from popagent_kit.errors import ConfigurationError
from popagent_kit.exec_shim import shim
from popagent_local.nats import EmbeddedNats, find_binary, server_info
from popagent_local.ports import free_port
from popagent_local.postgres import NOBODY, EmbeddedPostgres, RootMode
from popagent_proto.matrix import SERVICES, nats_authorization
from popagent_testing.servers import PostgresServer


def cluster(folder: Path, root: RootMode | None = None) -> EmbeddedPostgres:
    return EmbeddedPostgres(folder / "postgres", free_port(), "p%40ss/word", root=root, durable=False)


def initialise(server: EmbeddedPostgres) -> None:
    subprocess.run(server.init_command(), check=True, capture_output=True)
    server.adopt()


@contextlib.contextmanager
def started(server: EmbeddedPostgres) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(server.start_command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not server.accepts():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield process
    finally:
        process.send_signal(server.stop_signal)
        process.wait(20)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder whose parents every user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="popagent-open-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


async def test_a_cluster_takes_its_superuser_by_password_alone(tmp_path: Path) -> None:
    server = cluster(tmp_path)
    initialise(server)

    with started(server):
        connection = await asyncpg.connect(server.dsn())
        settings = [await connection.fetchval(f"show {name}") for name in ("listen_addresses", "password_encryption")]
        await connection.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(server.dsn().replace("p%25", "q"))

    assert settings == ["127.0.0.1", "scram-sha-256"]
    assert not list(tmp_path.glob("*.password"))


def test_an_initdb_killed_half_way_is_done_anew(tmp_path: Path) -> None:
    server = cluster(tmp_path)
    attempt = subprocess.Popen(server.init_command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "postgres.new" / "base").exists():
        time.sleep(0.001)
    os.killpg(attempt.pid, signal.SIGKILL)
    attempt.wait()

    half_made = server.initialised
    initialise(server)

    assert not half_made
    assert server.initialised
    with started(server):
        assert server.accepts()


def test_a_stale_pid_file_is_no_hindrance(tmp_path: Path) -> None:
    server = cluster(tmp_path)
    initialise(server)
    (server.data_dir / "postmaster.pid").write_text(f"{os.getpid()}\n{server.data_dir}\n0\n5432\n")

    with started(server):
        assert server.accepts()


def test_a_strangers_postmaster_on_the_folder_is_named(private_postgres: PostgresServer) -> None:
    data_dir = private_postgres.postgres.data_dir
    newcomer = EmbeddedPostgres(data_dir, free_port(), "x")

    with pytest.raises(
        ConfigurationError, match=rf"process {private_postgres.pid} on port {private_postgres.postgres.port}"
    ):
        newcomer.start_command()

    assert private_postgres.alive


def test_a_server_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    server = cluster(tmp_path)
    initialise(server)
    code = (
        "import os, subprocess, sys, time\n"
        "command = sys.argv[1:]\n"
        "command[command.index('--parent') + 1] = str(os.getpid())\n"
        "print(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, *server.start_command()], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    postmaster = psutil.Process(int(parent.stdout.readline()))
    deadline = time.monotonic() + 30
    while not server.accepts() and time.monotonic() < deadline:
        time.sleep(0.01)
    family = [postmaster, *postmaster.children(recursive=True)]

    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=15)

    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    assert len(family) > 3


def test_a_program_whose_parent_is_gone_already_never_runs() -> None:
    command = shim(["echo", "ran"], parent=2**22 - 1)

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (125, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user never needs it")
def test_root_without_user_namespaces_runs_postgresql_as_another_user(open_folder: Path) -> None:
    server = cluster(open_folder, root="setuid")

    initialise(server)
    with started(server) as process:
        owner = psutil.Process(process.pid).uids().real
        assert server.accepts()

    assert owner == NOBODY


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user never needs it")
def test_root_without_user_namespaces_is_told_when_the_way_is_closed(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o700)
    server = cluster(tmp_path / "closed" / "home", root="setuid")

    with pytest.raises(ConfigurationError, match="POPAGENT_HOME"):
        server.init_command()


ORDINARY = """
import subprocess, sys, time
from pathlib import Path
from popagent_local.nats import EmbeddedNats
from popagent_local.ports import free_port
from popagent_local.postgres import EmbeddedPostgres

folder = Path(sys.argv[1])
postgres = EmbeddedPostgres(folder / "postgres", free_port(), "x", durable=False)
subprocess.run(postgres.init_command(), check=True, stdout=subprocess.DEVNULL)
postgres.adopt()
servers = [postgres, EmbeddedNats(folder / "nats", free_port())]
running = [subprocess.Popen(server.start_command(), stderr=subprocess.DEVNULL) for server in servers]
deadline = time.monotonic() + 30
while not all(server.accepts() for server in servers) and time.monotonic() < deadline:
    time.sleep(0.02)
print(postgres.root, [server.accepts() for server in servers])
for server, process in zip(servers, running):
    process.send_signal(server.stop_signal)
print([process.wait(20) for process in running])
"""


def python_for_everyone() -> str | None:
    """Return a Python like this one that every user can run, with every folder of this one's path readable."""
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    code = (
        f"import sys; assert sys.version_info[:2] == {sys.version_info[:2]}; import popagent_local.postgres, pydantic"
    )
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info[1]}", "/usr/bin/python3"):
        with contextlib.suppress(OSError):
            done = subprocess.run(
                [candidate, "-c", code],
                env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
                capture_output=True,
                check=False,
                **as_nobody,  # type: ignore[call-overload]
            )
            if done.returncode == 0:
                return candidate
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user then")
def test_an_ordinary_user_needs_neither(open_folder: Path) -> None:
    python = python_for_everyone()
    if python is None:
        pytest.skip("no other user can read this Python and this folder")
    os.chown(open_folder, NOBODY, NOBODY)

    done = subprocess.run(
        [python, "-c", ORDINARY, str(open_folder)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], "HOME": str(open_folder)}
        | {"POPAGENT_NATS_BIN": str(find_binary())},
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
    )

    assert done.stdout.splitlines() == ["none [True, True]", "[0, 0]"], done.stderr


def test_nats_keeps_its_passwords_to_itself_and_knows_every_service(tmp_path: Path) -> None:
    passwords = {name: f"secret-{name}" for name in ("admin", *(row.name for row in SERVICES))}
    server = EmbeddedNats(tmp_path / "nats", free_port(), nats_authorization(passwords))
    process = subprocess.Popen(server.start_command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 15
    while not server.accepts() and time.monotonic() < deadline:
        time.sleep(0.01)

    info = server_info(server.port)
    holder = server.running()
    with pytest.raises(ConfigurationError, match=f"process {process.pid}"):
        EmbeddedNats(server.store_dir, free_port()).start_command()
    process.send_signal(server.stop_signal)
    process.wait(15)

    assert info is not None
    assert (info["auth_required"], info["jetstream"], info["max_payload"]) == (True, True, 8 * 1024 * 1024)
    assert stat.S_IMODE(server.config_file.stat().st_mode) == 0o600
    assert holder == process.pid
    assert server.running() is None
