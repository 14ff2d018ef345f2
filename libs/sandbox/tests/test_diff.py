from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from popagent_sandbox.diff import diff
from popagent_sandbox.git_records import harmless_lines


def test_a_diff_shows_the_lines_and_counts_them() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 101)).encode()
    after = before.replace(b"line 50\n", b"fifty\nand more\n").replace(b"line 90\n", b"")

    shown = diff(before, after)

    assert (shown.added, shown.removed, shown.cut) == (2, 2, False)
    assert shown.text.splitlines()[:7] == [
        "@@ -48,5 +48,6 @@",
        " line 48",
        " line 49",
        "-line 50",
        "+fifty",
        "+and more",
        " line 51",
    ]
    assert "@@ -88,5 +89,4 @@" in shown.text


def test_a_diff_tells_when_only_the_end_of_the_file_changed() -> None:
    assert diff(b"a\nb\n", b"a\nb").text.splitlines()[-2:] == ["-b", "+b (no line feed at the end)"]


def test_a_diff_is_bounded_in_characters_and_in_time() -> None:
    before = "".join(f"{number}\n" for number in range(20_000)).encode()
    after = "".join(f"{number} x\n" for number in range(20_000)).encode()
    begun = time.process_time()

    many = diff(before, after)
    some = diff(before[:4_000], after[:4_000], characters=300)

    assert (many.text, many.added, many.removed, many.cut) == ("", 20_000, 20_000, True)
    assert len(some.text) <= 300
    assert some.cut
    assert time.process_time() - begun < 5


LINES = st.lists(st.sampled_from(["a", "b", "aa", ""]), max_size=8)


@given(before=LINES, after=LINES, ends=st.tuples(st.booleans(), st.booleans()))
def test_the_hunks_of_a_diff_turn_the_one_text_into_the_other(
    before: list[str], after: list[str], ends: tuple[bool, bool]
) -> None:
    old, new = ("\n".join(lines) + "\n" * end for lines, end in zip((before, after), ends, strict=True))
    shown = diff(old.encode(), new.encode()).text.replace(" (no line feed at the end)", "").splitlines()
    source, expected = (text.split("\n")[: -1 if text[-1:] in ("", "\n") else None] for text in (old, new))
    done, result = 0, []

    for line in shown:
        if line.startswith("@@"):
            first, _, count = line.split(" ")[1][1:].partition(",")
            at = int(first) - (count != "0")
            result += source[done:at]
            done = at
        else:
            result += [line[1:]] * (line[0] != "-")
            assert line[0] == "+" or source[done] == line[1:]
            done += line[0] != "+"

    assert [*result, *source[done:]] == expected


def test_a_diff_shows_no_line_of_a_private_key() -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\nCANARYone\n-----END RSA PRIVATE KEY-----\n"

    assert "CANARY" not in diff(key + b"a\n", key + b"b\n").text


def test_a_credential_at_the_place_where_a_line_is_cut_does_not_show_in_part() -> None:
    line = f"{'x' * 220} postgres://me:CANARYCANARYCANARY@host/db"

    shown = diff(b"", f"{line}\n".encode())
    lines = harmless_lines(f"{'x' * 480} postgres://me:CANARYCANARYCANARY@host/db")

    assert "CANARY" not in shown.text + lines
    assert shown.text.endswith("…")
    assert lines.endswith("…")
