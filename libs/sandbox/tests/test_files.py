from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from popagent_kit.errors import InvalidInputError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.denied import why_denied
from popagent_sandbox.errors import UnreadableFileError, WrongKindError
from popagent_sandbox.listing import list_folder
from popagent_sandbox.reading import LARGEST_FILE_BYTES, read_text, stat_path
from popagent_sandbox.searching import Pattern, grep


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "app.py").write_text("import os\n\n\ndef Main() -> None:\n    os.exit(main)\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.js").write_text("main")
    (tmp_path / ".env").write_text("main=secret")
    (tmp_path / "README.md").write_text("one\ntwo\nthree\n")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\0\0main")
    return tmp_path


@pytest.fixture
def folder(root: Path) -> Iterator[ContainedFolder]:
    with ContainedFolder(root) as folder:
        yield folder


def test_a_read_tells_lines_size_and_hash(folder: ContainedFolder) -> None:
    found = read_text(folder, "README.md")

    assert (found.text, found.first_line, found.last_line, found.total_lines) == ("one\ntwo\nthree", 1, 3, 3)
    assert found.sha256 == hashlib.sha256(b"one\ntwo\nthree\n").hexdigest()
    assert found.complete


def test_a_read_can_begin_later_and_end_earlier(folder: ContainedFolder) -> None:
    found = read_text(folder, "README.md", offset=2, limit=1)

    assert (found.text, found.first_line, found.last_line) == ("two", 2, 2)
    assert not found.complete


def test_a_read_past_the_end_is_empty_and_tells_how_many_lines_there_are(folder: ContainedFolder) -> None:
    found = read_text(folder, "README.md", offset=10)

    assert (found.text, found.last_line, found.total_lines) == ("", 0, 3)


def test_a_read_is_bounded_in_characters_and_in_the_length_of_a_line(folder: ContainedFolder, root: Path) -> None:
    (root / "long.txt").write_text("x" * 5_000 + "\nshort\n")

    by_line = read_text(folder, "long.txt")
    by_characters = read_text(folder, "long.txt", characters=100)

    assert by_line.lines_cut == 1
    assert len(by_line.text.splitlines()[0]) == 2_000
    assert by_characters.last_line == 1


def test_bytes_that_are_not_utf8_are_replaced(folder: ContainedFolder, root: Path) -> None:
    (root / "latin.txt").write_bytes("\ufeffgr\u00fc\u00dfe".encode("utf-8") + b"\xff\r\n")

    text = read_text(folder, "latin.txt").text

    assert text == "gr\u00fc\u00dfe\ufffd"


def test_binary_and_oversized_files_are_refused_with_their_size(folder: ContainedFolder, root: Path) -> None:
    with (root / "huge.txt").open("wb") as huge:
        huge.truncate(LARGEST_FILE_BYTES + 1)

    with pytest.raises(UnreadableFileError, match="binary file of 10 bytes"):
        read_text(folder, "logo.png")
    with pytest.raises(UnreadableFileError, match=str(LARGEST_FILE_BYTES + 1)):
        read_text(folder, "huge.txt")


def test_an_empty_file_is_read_as_nothing(folder: ContainedFolder, root: Path) -> None:
    (root / "empty").touch()

    found = read_text(folder, "empty")

    assert (found.text, found.total_lines) == ("", 0)


@pytest.mark.parametrize(
    "name", [".GIT", ".g\u200cit", ".git.", ".git ", "GIT~1", "\uff0egit", ".env\u200b", ".env.", ".Popagent-1.tmp"]
)
def test_a_name_that_some_file_system_takes_for_a_hidden_one_is_hidden(name: str) -> None:
    assert why_denied(("src", name, "config")) is not None


def test_a_stat_tells_kind_and_size(folder: ContainedFolder) -> None:
    assert (stat_path(folder, "README.md").kind, stat_path(folder, "README.md").size_bytes) == ("file", 14)
    assert stat_path(folder, "src").kind == "folder"


def test_a_listing_hides_what_is_denied_and_counts_it(folder: ContainedFolder) -> None:
    listing = list_folder(folder)

    assert [entry.path for entry in listing.entries] == ["node_modules", "src", "README.md", "logo.png"]
    assert (listing.hidden, listing.complete, listing.depth) == (1, True, 1)


def test_a_deeper_level_is_listed_only_when_all_of_it_fits(folder: ContainedFolder) -> None:
    wide = list_folder(folder, depth=2)
    narrow = list_folder(folder, depth=2, limit=4)

    assert "src/app.py" in [entry.path for entry in wide.entries]
    assert "node_modules/x.js" not in [entry.path for entry in wide.entries]
    assert (len(narrow.entries), narrow.depth, narrow.complete) == (4, 1, True)


def test_a_listing_is_cut_at_its_limit(folder: ContainedFolder) -> None:
    listing = list_folder(folder, limit=2)

    assert (len(listing.entries), listing.complete) == (2, False)


def test_a_listing_names_links_and_odd_names_without_following_them(folder: ContainedFolder, root: Path) -> None:
    os.symlink("/etc", root / "away")
    (root / "new\nline").touch()
    (root / os.fsdecode(b"bad\xff")).touch()

    kinds = {entry.path: entry.kind for entry in list_folder(folder).entries}

    assert kinds["away"] == "link"
    assert kinds["new\nline"] == "file"
    with pytest.raises(WrongKindError):
        list_folder(folder, "README.md")


def test_grep_finds_lines_and_passes_over_hidden_binary_and_vendored_files(folder: ContainedFolder) -> None:
    result = grep(folder, "main")

    assert [(match.path, match.line, match.text) for match in result.matches] == [
        ("src/app.py", 4, "def Main() -> None:"),
        ("src/app.py", 5, "os.exit(main)"),
    ]
    assert result.ended == ""


def test_grep_minds_case_once_the_pattern_has_an_upper_case_letter(folder: ContainedFolder) -> None:
    result = grep(folder, "Main")

    assert [match.line for match in result.matches] == [4]


def test_grep_searches_an_invalid_expression_as_plain_text(folder: ContainedFolder) -> None:
    result = grep(folder, "exit(")

    assert result.literal
    assert [match.line for match in result.matches] == [5]


def test_grep_searches_one_named_file_or_folder_even_a_vendored_one(folder: ContainedFolder) -> None:
    assert [match.path for match in grep(folder, "main", "node_modules").matches] == ["node_modules/x.js"]
    assert [match.path for match in grep(folder, "t", "README.md").matches] == ["README.md", "README.md"]


def test_grep_stops_at_its_limit_and_shares_it_among_files(folder: ContainedFolder, root: Path) -> None:
    (root / "many.txt").write_text("hit\n" * 50)
    (root / "other.txt").write_text("hit\n")

    limited = grep(folder, "hit", limit=3, limit_per_file=10)
    shared = grep(folder, "hit", limit=30, limit_per_file=10)

    assert (len(limited.matches), limited.ended) == (3, "limit")
    assert [match.path for match in shared.matches] == ["many.txt"] * 10 + ["other.txt"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_that_would_explode_elsewhere_takes_less_than_a_second_on_a_megabyte_line(
    folder: ContainedFolder, root: Path, pattern: str
) -> None:
    (root / "line.txt").write_text("a" * 1_000_000 + "!")

    begun = time.process_time()  # ours alone, however busy the machine is
    grep(folder, pattern, "line.txt")

    assert time.process_time() - begun < 1


def test_a_pattern_that_is_slow_even_in_linear_time_ends_by_its_budget(folder: ContainedFolder, root: Path) -> None:
    (root / "line.txt").write_text("ab" * 500_000)

    begun = time.process_time()
    with pytest.raises(InvalidInputError, match="too complex"):
        grep(folder, "(a.{900}c)|(b.{800}c)")
    grep(folder, "(a.{200}c)|(b.{200}c)")

    assert time.process_time() - begun < 5


PIECES = st.sampled_from(
    [
        "a",
        "b",
        "B",
        ".",
        "a*",
        "[^a]",
        r"\s",
        r"\b",
        "^",
        "$",
        "(a|b)",
        r"\A",
        r"\z",
        "(?-m:^)",
        "(?i)",
        "a{2}",
        r"\r",
        r"\n",
        "(",
    ]
)


@hypothesis_settings(max_examples=400, deadline=None)
@given(pattern=st.lists(PIECES, min_size=1, max_size=5).map("".join), content=st.text("abB \r\n\u00fc", max_size=24))
def test_no_line_that_matches_is_lost_by_looking_through_whole_files_first(pattern: str, content: str) -> None:
    compiled, data = Pattern(pattern), content.encode()

    by_line = any(compiled.find(line.removesuffix(b"\r")) for line in data.split(b"\n"))

    assert compiled.may_occur(data) or not by_line


def test_grep_ends_when_it_is_told_to_or_when_its_time_is_over(folder: ContainedFolder) -> None:
    assert grep(folder, "main", stopped=lambda: True).ended == "stopped"
    assert grep(folder, "main", time_s=-1).ended == "time"


def test_an_empty_or_too_long_pattern_is_refused(folder: ContainedFolder) -> None:
    for pattern in ("", "x" * 1_001):
        with pytest.raises(InvalidInputError):
            grep(folder, pattern)


def test_a_long_line_is_shown_around_its_match(folder: ContainedFolder, root: Path) -> None:
    (root / "min.js").write_text("x" * 3_000 + "needle" + "y" * 3_000)

    match = grep(folder, "needle").matches[0]

    assert "needle" in match.text
    assert len(match.text) <= 240


KEY_FILE = "first\n-----BEGIN RSA PRIVATE KEY-----\nCANARYone\nCANARYtwo\n-----END RSA PRIVATE KEY-----\nlast\n"


def test_no_single_line_of_a_private_key_is_shown(root: Path, folder: ContainedFolder) -> None:
    (root / "deploy.txt").write_text(KEY_FILE)
    (root / "account.json").write_text('{"private_key": "-----BEGIN PRIVATE KEY-----\\n' + "CANARY" * 400)

    read = read_text(folder, "deploy.txt", offset=3, limit=2)
    found = [match.text for match in grep(folder, "canary").matches]
    whole = read_text(folder, "deploy.txt")

    assert "CANARY" not in read.text + "".join(found)
    assert (whole.total_lines, whole.text.splitlines()[0], whole.text.splitlines()[-1]) == (6, "first", "last")
    assert whole.sha256 == hashlib.sha256(KEY_FILE.encode()).hexdigest()


def test_a_long_line_is_redacted_before_it_is_cut(root: Path, folder: ContainedFolder) -> None:
    token = "eyJ" + "h" * 300 + "." + "CANARY" * 100 + ".needle"
    (root / "min.js").write_text(f"var a={'x' * 300};t('{token}');y" + "z" * 3_000)
    (root / "url.txt").write_text("u" * 1_960 + " https://somebody:CANARYword@host.example/path")

    found = [match.text for match in grep(folder, "needle|ANARYC").matches]
    line = read_text(folder, "url.txt").text

    assert "CANARY" not in "".join(found) + line
    assert len(found) == 1
