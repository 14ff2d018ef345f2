"""Folding, patterns and excerpts: rules without a database."""

from __future__ import annotations

import re

import pytest

from popagent_chat.threads.words import SEARCHED_CHARACTERS, Wanted, folded, plain
from popagent_proto.chat.sessions import EXCERPT_CHARACTERS


def holds(text: str, query: str) -> bool:
    """Compare as `like` does: `%` stands for anything, a backslash for what follows it."""
    wanted = Wanted.of(query)
    patterns = [wanted.first, *wanted.others]
    return all(re.search(re.sub(r"\\(.)", lambda m: re.escape(m[1]), p[1:-1]), folded(text)) for p in patterns)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The HERON stands", "heron"),
        ("Café Größe naïve", "CAFE grosse"),
        ("Zażółć gęślą jaźń", "zazolc gesla"),
        ("def readFile_v2(path):", "file_V2"),
        ("100% sure", "100%"),
        (r"C:\temp\x", r"temp\x"),
        ("日本語のテキスト検索", "テキスト 日"),
        ("Привет, мир", "ПРИВЕТ"),
        ("ＡＢＣ１２３ full width", "abc123"),
        ("decomposed e\u0301te\u0301", "été"),
        ("été", "e\u0301te\u0301"),
        ("İstanbul", "istanbul"),
        ("👩‍🚀 in space", "👩‍🚀"),
        ("가나다", "나"),
    ],
)
def test_every_word_is_found_whatever_its_case_and_accents(text: str, query: str) -> None:
    assert holds(text, query)
    assert folded(text).isascii()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The heron stands", "heron gull"),
        ("abc", "a%c"),
        ("abc", "a_c"),
        ("100 sure", "100%"),
        ("日本", "本日"),
        ("が", "か"),
        ("日", "a"),
        ("日", "AN"),
    ],
)
def test_nothing_else_is_found(text: str, query: str) -> None:
    assert not holds(text, query)


def test_no_character_is_found_within_another() -> None:
    spelled = [folded(chr(code)) for code in range(0x3400, 0x9FFF, 7)]

    together = "".join(spelled)

    assert len(set(spelled)) > 3_000
    assert {len(one) for one in spelled} == {5}
    assert all(together.find(one) % 5 == 0 for one in spelled)


def test_an_index_is_asked_only_for_what_has_a_trigram() -> None:
    queries = ("ab", "a b c", "--", "abc", "ab heron", "語", "ab_c", "é")

    assert [Wanted.of(query).indexed for query in queries] == [False, False, False, True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("The heron stands.", "stand", "The heron stands."),
        ("a\n\n# Title\tof it\n", "title", "a # Title of it"),
        ("word " * 100 + "the Café here " + "word " * 100, "cafe", None),
        ("ﬁ… " * 200 + "needle" + " ﬁ" * 200, "needle", None),
        ("語" * 500 + "検索" + "字" * 500, "検索", None),
        ("x" * 100_000 + "needle", "needle", None),
        ("nothing of it", "elsewhere", "nothing of it"),
        ("safe \x1b[2J\u202eheron\x00", "heron", "safe [2Jheron"),
    ],
)
def test_an_excerpt_is_one_plain_line_around_the_hit(text: str, query: str, excerpt: str | None) -> None:
    made = Wanted.of(query).excerpt(text)

    assert len(made) <= EXCERPT_CHARACTERS
    if excerpt is not None:
        assert made == excerpt
    else:
        assert plain(query) in plain(made)[:110]
        assert made.startswith("…")


def test_of_a_very_long_text_the_beginning_is_searched() -> None:
    assert len(folded("x" * SEARCHED_CHARACTERS + "needle")) == SEARCHED_CHARACTERS
