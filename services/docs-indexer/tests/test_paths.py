from __future__ import annotations

import contextlib
import posixpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_docs_indexer.paths import (
    DEEPEST,
    LONGEST_PATH,
    LONGEST_SEGMENT,
    DocPath,
    folder_path,
    is_markdown,
    page_path,
)
from popagent_kit.errors import InvalidInputError

REFUSED = [
    ("", "empty"),
    ("   ", "empty"),
    ("/abs.md", "absolute"),
    ("//abs.md", "absolute"),
    ("\\abs.md", "absolute"),
    ("C:abs.md", "absolute"),
    ("c:\\abs.md", "absolute"),
    ("../../etc/passwd.md", "traversal"),
    ("a/../b.md", "traversal"),
    ("a/./b.md", "traversal"),
    ("a/..\u200d/b.md", "traversal"),
    ("a//b.md", "empty-segment"),
    ("a/b.md/", "empty-segment"),
    ("a/\u200d/b.md", "empty-segment"),
    (".hidden/x.md", "hidden"),
    ("a/.md", "hidden"),
    ("\u200d.git/x.md", "hidden"),
    ("a\\..\\b.md", "backslash"),
    ("x.txt", "markdown-only"),
    ("x", "markdown-only"),
    ("x.md.exe", "markdown-only"),
    ("x.mdx", "markdown-only"),
    ("a\x00.md", "control-character"),
    ("a\n.md", "control-character"),
    ("a\u202egpj.md", "control-character"),
    ("a\u200b.md", "control-character"),
    ("\ufeffa.md", "control-character"),
    ("a\ud800.md", "control-character"),
    (" a.md", "blank-at-an-end"),
    ("a /b.md", "blank-at-an-end"),
    ("a./b.md", "blank-at-an-end"),
    ("a\u3000/b.md", "blank-at-an-end"),
    ("\u2024\u2024/x.md", "look-alike"),
    ("\uff0e\uff0e/x.md", "look-alike"),
    ("\u2026x.md", "look-alike"),
    ("a\u2215b.md", "look-alike"),
    ("a\uff0fb.md", "look-alike"),
    ("a\uff3cb.md", "look-alike"),
    ("\u0440aypal.md", "look-alike"),
    ("README\u03bf.md", "look-alike"),
    ("%2e%2e/x.md", "look-alike"),
    ("%252E%252e%252fx.md", "look-alike"),
    ("a%00.md", "look-alike"),
    ("ä" * 127 + ".md", "too-long"),
    ("a/" * (DEEPEST - 1) + "b/c.md", "too-deep"),
    ("/".join(["a" * 100] * 11) + ".md", "too-long"),
]


@pytest.mark.parametrize(("text", "rule"), REFUSED)
def test_what_breaks_a_rule_is_refused_by_its_name(text: str, rule: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        page_path(text, field="to")

    assert (refused.value.field, refused.value.extra["rule"]) == ("to", rule)
    assert len(refused.value.message) < 300
    assert refused.value.message.isprintable()
    assert refused.value.extra["given"].encode().decode().isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "a.md",
        "Über uns/Straße.md",
        "日本/ガイド.MARKDOWN",
        "сор/почему.md",
        "Δt and ε.md",
        "100%.md",
        "was nun….md",
        "a..b.md",
        "why: b.md",
        "नि\u200dज.md",
        "👩\u200d💻.md",
        "a" * (LONGEST_SEGMENT - 3) + ".md",
        "a/" * (DEEPEST - 1) + "c.md",
    ],
)
def test_plain_names_of_any_language_are_taken_as_they_are(text: str) -> None:
    assert page_path(text).text == text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a/B.md", "A/b.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("STRASSE.md", "straße.md"),
        ("ﬁle.md", "file.md"),
        ("ｆｉｌｅ.md", "file.md"),
        ("сор.md", "cop.md"),
        ("a\u200db.md", "ab.md"),
        ("ΑΒΕ.md", "ABE.md"),
    ],
)
def test_paths_that_read_alike_have_one_key(one: str, other: str) -> None:
    assert page_path(one).key == page_path(other).key


def test_a_path_knows_what_it_lies_in() -> None:
    path = page_path("Guide/First/a.md")

    assert [each.text for each in path.above()] == ["Guide", "Guide/First"]
    assert path.above()[1] == folder_path("Guide/First")
    assert path.is_in(folder_path("guide"))
    assert not path.is_in(folder_path("Guid"))
    assert not folder_path("a").above()


PIECES = st.sampled_from(
    [
        "a",
        "B",
        "é",
        "e\u0301",
        "/",
        "..",
        ".",
        "\\",
        " ",
        "%2e",
        "\u2024",
        "\uff0f",
        "р",
        "md",
        ".md",
        "\u200d",
        "ガ",
        "\x00",
    ]
)
TEXTS = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=12).map("".join))


@given(TEXTS)
def test_whatever_is_taken_stays_below_its_workspace_and_is_taken_again_as_it_is(text: str) -> None:
    with contextlib.suppress(InvalidInputError):
        path = page_path(text + ".md")

        assert posixpath.normpath(path.text) == path.text
        assert posixpath.normpath(posixpath.join("/root", path.text)).startswith("/root/")
        for segment in path.text.split("/"):
            # No reading of it, by whatever system, goes up or hides it.
            for form in ("NFC", "NFD", "NFKC", "NFKD"):
                read = unicodedata.normalize(form, segment)
                assert read not in (".", "..")
                assert not read.startswith(".")
                assert "\\" not in read
            assert 0 < len(segment.encode()) <= LONGEST_SEGMENT
        assert len(path.text.encode()) <= LONGEST_PATH
        assert path.text.count("/") == path.key.count("/") < DEEPEST
        assert is_markdown(path.name)
        assert page_path(path.text) == path
        assert page_path(unicodedata.normalize("NFD", path.text)) == path


@given(TEXTS, TEXTS)
def test_keys_stand_one_after_another_as_names_do(folder: str, name: str) -> None:
    with contextlib.suppress(InvalidInputError):
        above, page = folder_path(folder), page_path(name + ".md")
        whole: DocPath = page_path(f"{folder}/{name}.md")

        assert whole.key == f"{above.key}/{page.key}"
        assert whole.folder == above or "/" in page.text


@given(TEXTS)
def test_case_and_normal_form_make_no_difference_to_the_key(text: str) -> None:
    with contextlib.suppress(InvalidInputError):
        path = page_path(text + ".md")
        for other in (text.upper(), text.lower(), unicodedata.normalize("NFD", text)):
            with contextlib.suppress(InvalidInputError):
                same = page_path(other + ".md")
                if other.casefold() == text.casefold():
                    assert same.key == path.key
