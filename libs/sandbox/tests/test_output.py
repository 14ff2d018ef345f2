from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_sandbox.output import Output, Printed, plain


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b(B", "red textlink"),
        (b"10%\r50%\r100%\nnext\r\n", "100%\nnext\n"),
        (b"caf\xc3\xa9 \xff\xfe\0\x07\x08", "café \\xff\\xfe\\x00\\x07\\x08"),
        (b"\x1b]never ended\nnext line", "\nnext line"),
        ("\u202etxt.exe\u2028".encode(), "\\u202etxt.exe\\u2028"),
        (b"tab\tstays", "tab\tstays"),
    ],
)
def test_what_steers_a_terminal_is_gone_or_written_out(printed: bytes, shown: str) -> None:
    assert plain(printed) == shown


@given(st.binary(max_size=300))
def test_anything_becomes_text_without_control_characters(printed: bytes) -> None:
    text = plain(printed)

    assert all(char in "\n\t" or char >= " " for char in text)
    text.encode()


@given(st.lists(st.binary(max_size=40), max_size=30))
def test_the_beginning_and_the_end_are_kept_and_the_rest_is_counted(pieces: list[bytes]) -> None:
    output = Output(head_bytes=16, tail_bytes=32)
    whole = b"".join(pieces).replace(b"\x1b", b"e").replace(b"\r", b"r")
    for piece in pieces:
        output.add(piece.replace(b"\x1b", b"e").replace(b"\r", b"r"))

    printed = output.take()

    if len(whole) <= 48:
        assert (printed.head, printed.tail, printed.left_out_bytes) == (plain(whole), "", 0)
    else:
        assert (printed.head, printed.tail) == (plain(whole[:16]), plain(whole[-32:]))
        assert printed.left_out_bytes == len(whole) - 48
    assert output.total_bytes == len(whole)
    assert output.take().head == ""


def test_a_long_output_is_shown_by_whole_lines_and_says_what_is_missing() -> None:
    output = Output()
    output.add("".join(f"line {number}\n" for number in range(100_000)).encode())
    printed = output.take()

    text = printed.within(300)

    beginning, end = text.split("\n[… about ")
    assert beginning.startswith("line 0\nline 1\n")
    assert end.endswith("line 99998\nline 99999\n")
    assert len(text) < 400
    assert int(end.split(" ", 1)[0]) == pytest.approx(100_000 * 10.9, rel=0.02)


def test_an_output_without_lines_is_cut_between_its_ends() -> None:
    output = Output()
    output.add(b"a" * 500 + b"z" * 500)

    text = output.take().within(30)

    assert text == f"{'a' * 10}\n[… about 970 characters are left out here …]\n{'z' * 20}"


def test_a_private_key_is_gone_before_the_middle_is_left_out() -> None:
    body = "\n".join(["CANARY" * 10] * 30)
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"

    shown = Printed(f"begin\n{key}\n{'word ' * 200}").within(900)

    assert "CANARY" not in shown
    assert shown.startswith("begin")
