"""Ids, JSON, text, errors and log lines."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_kit import json
from popagent_kit.errors import AppError, ConflictError, MalformedJsonError, NotFoundError, RevisionConflictError
from popagent_kit.ids import is_client_id, new_id
from popagent_kit.log import LineFormatter
from popagent_kit.text import excerpt, fits_a_header, one_line


def test_ids_are_uuidv7_and_sort_by_their_millisecond() -> None:
    first = new_id()
    time.sleep(0.002)
    second = new_id()

    assert uuid.UUID(first).version == 7
    assert first < second
    assert is_client_id(first)
    assert len({new_id() for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize("text", ["", "a.b", "a*", "a>", "a b", "a\r\nb", "a\n", "é", "a" * 65, "a/b", "a\x00"])
def test_what_could_break_a_subject_or_a_header_is_no_id(text: str) -> None:
    assert not is_client_id(text)


@pytest.mark.parametrize("data", [b"", b"{", b"nul", b"[1,]", b"\xff", b"[" * 100_000, b"NaN"])
def test_what_is_not_json_is_an_input_error(data: bytes) -> None:
    with pytest.raises(MalformedJsonError):
        json.loads(data)


@given(st.text(), st.integers(1, 50))
def test_an_excerpt_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    short = excerpt(text, limit)

    assert len(short) <= limit
    assert short == text or short.endswith("…")
    assert "\n" not in one_line(text, limit)


@pytest.mark.parametrize(
    ("text", "fits"),
    [("sk-1 2~", True), (" k", False), ("k ", False), ("k\n", False), ("a\rb", False), ("clé", False), ("\x7f", False)],
)
def test_what_an_http_header_carries_is_printable_ascii_without_blanks_at_its_ends(text: str, fits: bool) -> None:
    assert fits_a_header(text) is fits


def test_an_error_knows_its_status_and_is_found_by_its_code() -> None:
    error = NotFoundError(field="id")

    assert (error.http_status, error.field, error.message) == (404, "id", "There is nothing with this id.")
    assert AppError.by_code["not_found"] is NotFoundError
    assert RevisionConflictError().message == "revision conflict"
    assert issubclass(RevisionConflictError, ConflictError)


@pytest.mark.parametrize("plain", [True, False])
def test_a_log_line_is_one_line_and_redacted(plain: bool) -> None:
    formatter = LineFormatter(plain=plain, redact=lambda text: text.replace("hunter2", "[redacted]"))
    try:
        raise ValueError("hunter2")
    except ValueError:
        failure = sys.exc_info()
    record = logging.LogRecord("test", logging.ERROR, __file__, 1, "login with %s", ("hunter2",), failure)
    record.password = "hunter2"

    line = formatter.format(record)

    assert "hunter2" not in line
    assert "ValueError" in line
    assert plain or (json.loads(line)["level"] == "error" and "\n" not in line)


def test_what_nobody_catches_is_written_down_redacted() -> None:
    program = """
import threading
from popagent_kit import log

def fail():
    raise ValueError("it is hunter" + str(2))

log.set_up(plain=True, redact=lambda text: text.replace("hunter2", "[redacted]"))
thread = threading.Thread(target=fail)
thread.start()
thread.join()
fail()
"""

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr.count("ValueError: it is [redacted]") == 2
    assert "hunter2" not in ended.stderr
