"""The command in a process of its own: on a terminal, and under real signals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from popagent_uistream import chunks as c

from .conftest import Peer, view

COMMAND = [sys.executable, "-c", "from popagent_cli.main import main; main(prog_name='popagent')"]
# The terminal must be the process's own, so that Ctrl-C typed on it becomes a signal; and that is not ignored, as it is
# by what a shell without job control started in the background, this test run perhaps.
OWN_TERMINAL = (
    "import fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.default_int_handler)"
)
ON_TERMINAL = [*COMMAND[:2], f"{OWN_TERMINAL}; {COMMAND[2]}"]
LIMIT_S = 20.0
PROMPT = "› "


def variables(home: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "POPAGENT_HOME": str(home), "HOME": str(home), "TERM": "xterm", "LANG": "C.UTF-8"}


class Terminal:
    """A command on a pseudo-terminal of 80 columns."""

    def __init__(self, home: Path, *args: str) -> None:
        self.shown = ""
        home.mkdir(exist_ok=True)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.process = subprocess.Popen(
            [*ON_TERMINAL, *args],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=variables(home),
            cwd=home,
            start_new_session=True,
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, wanted: str | Callable[[], bool]) -> None:
        """Read until `wanted` was shown (or is true)."""
        deadline = time.monotonic() + LIMIT_S
        while not (wanted() if callable(wanted) else wanted in self.shown):
            assert time.monotonic() < deadline, self.shown
            self._read()

    def end(self) -> int:
        """Read to the end and return the exit code."""
        deadline = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown
            self._read()
        while self._read():
            pass
        return self.process.returncode

    def _read(self) -> bool:
        """Read what is there, waiting a moment; False when there was nothing, or the other end is closed."""
        if not select.select([self.master], [], [], 0.05)[0]:
            return False
        try:
            self.shown += os.read(self.master, 65_536).decode("utf-8", "replace")
        except OSError:
            return False
        return True

    @property
    def plain(self) -> str:
        """What is left on the screen, without colours and without lines that were erased."""
        text = re.sub(r"[^\n]*\r\x1b\[2K", "", self.shown.replace("\r\n", "\n"))
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT_S)
        os.close(self.master)


@pytest.fixture
def terminal(home: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*args: str) -> Terminal:
        opened.append(Terminal(home, *args))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def spoken(*texts: str) -> list[c.Chunk]:
    return [
        c.start(message_id="a1"),
        c.start_step(),
        c.text_start("x"),
        *(c.text_delta("x", text) for text in texts),
        c.text_end("x"),
        c.finish_step(),
        c.finish(finish_reason="stop"),
    ]


def test_while_the_model_reads_a_line_says_so_and_leaves_no_trace(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    peer.script.chunks = spoken("Never said.")
    peer.script.hold_at = 2
    shown = terminal("--url", peer.url, "chat", "Hello")
    shown.until("reading… 1 s")

    peer.script.stopped.set()
    shown.end()

    assert "reading" not in shown.plain
    assert "stopped; what was written so far is kept" in shown.plain


def test_ctrl_c_stops_the_answer_on_the_server_and_keeps_what_was_written(
    peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    peer.script.chunks = spoken("The first words", " and never these")
    peer.script.hold_at = 4
    shown = terminal("--url", peer.url, "chat", "Hello")
    shown.until("The first words")

    shown.type("\x03")
    code = shown.end()

    assert code == 130
    assert [asked.verb for asked in peer.asked] == ["chat", "stop"]
    assert shown.plain.count("The first words") == 1
    assert "stopped; what was written so far is kept" in shown.plain


def test_ctrl_c_twice_leaves_also_when_the_server_does_not_stop(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    peer.script.chunks = spoken("The first words", " and never these")
    peer.script.hold_at = 4
    peer.answers["stop"] = {"turnId": "t", "state": "running"}
    shown = terminal("--url", peer.url, "chat", "Hello")
    shown.until("The first words")

    shown.type("\x03")
    shown.until("Ctrl-C again leaves at once")
    shown.type("\x03")
    code = shown.end()

    assert code == 130
    assert "left; the answer may go on: popagent watch" in shown.plain
    assert "Traceback" not in shown.shown


def test_a_signal_without_a_terminal_stops_the_answer_too(peer: Peer, home: Path) -> None:
    peer.script.chunks = spoken("The first words", " and never these")
    peer.script.hold_at = 4
    home.mkdir()
    with subprocess.Popen(
        [*COMMAND, "--url", peer.url, "chat", "Hello"],
        env=variables(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert peer.script.held.wait(LIMIT_S)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT_S)

    assert (out, process.returncode) == ("The first words\n", 130)
    assert err.splitlines() == ["stopping; Ctrl-C again leaves at once", "stopped; what was written so far is kept"]


def test_leaving_a_watched_answer_stops_nothing(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    peer.script.chunks = spoken("The first words", " and never these")
    peer.script.hold_at = 4
    peer.script.seen = 4
    shown = terminal("--url", peer.url, "watch", "s1")
    shown.until("The first words")

    shown.type("\x03")
    code = shown.end()

    assert code == 130
    assert [asked.verb for asked in peer.asked] == ["watch"]
    assert "Traceback" not in shown.shown


def test_questions_are_asked_one_after_the_other_in_one_session(
    peer: Peer, terminal: Callable[..., Terminal], home: Path
) -> None:
    peer.script.chunks = spoken("An answer.")
    shown = terminal("--url", peer.url, "chat")

    for line in ("first", "second", "/new", "/sessions", "/model nope", "/model example", "third"):
        shown.until(lambda: shown.shown.endswith(PROMPT))
        shown.shown += "\n"
        shown.type(line + "\n")
    shown.until(lambda: shown.shown.endswith(PROMPT))
    shown.type("\x04")
    code = shown.end()

    assert shown.shown.count("An answer.") == 3
    assert "There is no model nope" in shown.shown
    assert "the next answers come from example" in shown.shown
    bodies = [asked.body for asked in peer.asked if asked.verb == "chat"]
    assert code == 0
    assert bodies[0]["id"] == bodies[1]["id"] != bodies[2]["id"]
    assert [body.get("model") for body in bodies] == [None, None, "example"]
    assert "first\nsecond\n" in (home / "chat-history").read_text()
    assert (home / "chat-history").stat().st_mode & 0o077 == 0


def test_an_error_does_not_end_the_conversation(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    peer.answers["chat"] = ({"error": "No model is chosen", "code": "configuration"}, 503, {"retry-after": "1"})
    shown = terminal("--url", "http://127.0.0.1:9", "chat")
    shown.until(lambda: shown.shown.endswith(PROMPT))

    shown.type("Hello\n")
    shown.until("Nothing answers at http://127.0.0.1:9")
    shown.type("/quit\n")

    assert shown.end() == 0


@pytest.mark.parametrize(
    ("words", "verb", "named"),
    [
        (("sessions", "delete", "s1"), "sessions delete", "“A title”"),
        (("task-delete", "t1"), "task-delete", "“A title”"),
        (("channel-delete", "m1"), "channel-delete", "m1"),
    ],
)
def test_what_goes_for_good_is_asked_about_and_stays_when_the_answer_is_no(
    words: tuple[str, ...], verb: str, named: str, peer: Peer, terminal: Callable[..., Terminal]
) -> None:
    peer.answers["sessions show"] = view("SessionView", title="A title")
    peer.answers["task-show"] = view("TaskView", title="A title")
    codes = []
    for answer in ("n\n", "y\n"):
        shown = terminal("--url", peer.url, *words)
        shown.until(f"Delete {named} for good? [y/N]:")
        before = [asked.verb for asked in peer.asked]
        shown.type(answer)
        codes.append(shown.end())

    assert codes == [1, 0]
    assert verb not in before
    assert peer.asked[-1].verb == verb


def test_a_list_fits_the_width_of_the_terminal(peer: Peer, terminal: Callable[..., Terminal]) -> None:
    row = {"id": "i" * 36, "updatedAt": "2026-01-02T03:04:05Z", "runningTurnId": None, "title": "word " * 60}
    peer.answers["sessions list"] = {"items": [row], "nextCursor": None}
    shown = terminal("--url", peer.url, "sessions", "list")

    shown.end()

    lines = shown.plain.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].endswith("…")
