"""What lies in the home: lock, state, credentials, logs."""

from __future__ import annotations

import io
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from popagent_kit.errors import NotFoundError
from popagent_local.credentials import Credentials
from popagent_local.infrastructure import Ports
from popagent_local.logs import Follower, last, log_files
from popagent_local.output import LogFile, Terminal, readable, tail
from popagent_local.ports import free_port, is_free
from popagent_local.state import AlreadyRunningError, HomeLock, ProgramState, SuiteState, is_held

HOLDER = """
import os, sys, time
from pathlib import Path
from popagent_local.state import HomeLock, SuiteState
home = Path(sys.argv[1])
with HomeLock(home):
    SuiteState(home=str(home), pid=os.getpid(), since="2026-01-01T00:00:00.000Z").write(home)
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_second_holder_is_refused_with_the_first_ones_name_and_kill_9_frees_the_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    holder.stdout.readline()

    with pytest.raises(AlreadyRunningError) as refused, HomeLock(tmp_path):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()

    assert all(word in str(refused.value) for word in (str(holder.pid), "2026-01-01", str(tmp_path), "popagent down"))
    assert not is_held(tmp_path)
    with HomeLock(tmp_path):
        assert is_held(tmp_path)


def test_the_state_survives_a_round_trip_and_rubbish_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    state = SuiteState(home="h", pid=7, ports={"nats": 4}, programs={"chat": ProgramState(pid=8, restarts=2)})

    state.write(tmp_path)
    again = SuiteState.read(tmp_path)
    (tmp_path / "run" / "state.json").write_text('{"programs": 3}')

    assert again == state
    assert SuiteState.read(tmp_path) is None
    assert SuiteState.read(tmp_path / "nowhere") is None


def test_credentials_are_made_once_and_closed_to_others(tmp_path: Path) -> None:
    first = Credentials(tmp_path)

    values = [first.role("chat"), first.secret_key(), *first.nats().values()]
    again = Credentials(tmp_path)

    assert [again.role("chat"), again.secret_key(), *again.nats().values()] == values
    assert len(set(values)) == len(values)
    assert stat.S_IMODE(first.folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in first.folder.iterdir()} == {0o600}


def test_a_taken_port_gives_another_and_a_free_one_is_kept(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        taken = int(other.getsockname()[1])
        instead = free_port(taken)
    ports = Ports({})
    first = ports.take("nats")

    assert instead != taken
    assert is_free(taken)
    assert Ports(dict(ports.remembered)).take("nats") == first
    assert ports.take("postgres") != first


def test_a_port_where_model_servers_are_looked_for_is_never_taken() -> None:
    ports = Ports({"chat": 20_128})

    assert ports.take("chat") != 20_128


def test_a_log_file_stays_within_its_bound(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "logs" / "chat.log", max_bytes=1_000)

    for number in range(400):
        file.write(f"line {number:>4}\n".encode())
    file.close()

    sizes = {path.name: path.stat().st_size for path in (tmp_path / "logs").iterdir()}
    assert set(sizes) == {"chat.log", "chat.log.1", "chat.log.2"}
    assert max(sizes.values()) <= 1_000
    assert tail(tmp_path / "logs" / "chat.log", 1) == ["line  399"]


def test_a_follower_reads_on_across_a_rotation(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "chat.log", max_bytes=60)
    file.write(b"before\n")
    follower = Follower(tmp_path / "chat.log")

    seen = []
    for number in range(30):
        file.write(f"line {number}\n".encode())
        seen += follower.lines()

    assert seen == [f"line {number}" for number in range(30)]


def test_logs_of_an_unknown_program_lists_the_known_ones(tmp_path: Path) -> None:
    LogFile(tmp_path / "logs" / "chat.log").write(b"hello\n")

    with pytest.raises(NotFoundError, match="There are: chat"):
        log_files(tmp_path, "caht")

    assert list(last(log_files(tmp_path), 5)) == [("chat", "hello")]


def test_json_lines_are_shown_as_sentences_and_everything_else_as_it_is() -> None:
    stream = io.StringIO()

    Terminal(stream).line(
        "chat",
        '{"at":"2026","level":"info","logger":"a.b","message":"turn ended","turn":"7","exception":"Traceback\\nX"}',
    )
    Terminal(stream, follow=False).line("chat", "hidden")

    assert stream.getvalue().splitlines() == [
        "chat             | INFO a.b: turn ended turn=7",
        "chat             | Traceback",
        "chat             | X",
    ]
    assert readable("{not json") == "{not json"


def test_the_longest_word_of_a_finished_step_leaves_the_times_in_their_column() -> None:
    stream = io.StringIO()

    for detail in ("embedded", "a clone of this repository"):
        Terminal(stream).done("default workspace", detail, 0.44)

    assert len({line.index("0.4 s") for line in stream.getvalue().splitlines()}) == 1


def test_while_it_starts_only_lines_that_may_be_trouble_are_shown() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream, starting=True)
    lines = [f'{{"level":"{level}","logger":"a.b","message":"m"}}' for level in ("debug", "info", "warning", "error")]

    for line in [*lines, "INFO a.b: text", "WARNING a.b: text", "Traceback", "{not json", "INFO without a logger"]:
        terminal.line("chat", line)
    terminal.starting = False
    terminal.line("chat", lines[1])

    shown = [line.partition("| ")[2] for line in stream.getvalue().splitlines()]
    assert shown == [
        "WARNING a.b: m",
        "ERROR a.b: m",
        "WARNING a.b: text",
        "Traceback",
        "{not json",
        "INFO without a logger",
        "INFO a.b: m",
    ]
