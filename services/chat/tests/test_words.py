"""Folding, patterns and excerpts: rules without a database."""

from __future__ import annotations

import re
import time

import pytest

from popagent_chat.threads.words import SEARCHED_CHARACTERS, Wanted, folded, plain
from popagent_kit.errors import InvalidInputError
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
        ("か\u3099", "が"),
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
        ("x" * 99_990 + "needle", "needle", None),
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


# Marks of alternating class have to be sorted; some are known as such only once they are taken apart.
ENDLESS = [
    "e" + "\u0316\u0301" * 49_990,
    "\u05b0\u0591" * 49_990,
    "\u0f73" * 99_990,
    "\uff9e\u0f72" * 49_990,
    "\u093c\u094d" * 49_990,
    "\U0001d165\U0001d17b" * 49_990,
]


@pytest.mark.parametrize("text", ENDLESS, ids=ascii)
def test_marks_without_end_cost_no_more_than_letters(text: str) -> None:
    began_at = time.thread_time()
    stored = folded(text + " heron")
    made = Wanted.of("heron").excerpt(text + " heron")

    assert time.thread_time() - began_at < 2
    assert "heron" in stored
    assert made.endswith(" heron")


def test_marks_that_belong_to_one_letter_count() -> None:
    letter = "\u05e9\u05bc\u05c1\u05b8"

    assert holds(f"a {letter} b", letter)
    assert not holds("a \u05e9 b", letter)


def test_what_is_stored_of_characters_that_stand_for_many_has_an_end() -> None:
    assert len(plain("ﷺ" * 50_000)) == SEARCHED_CHARACTERS
    assert len(folded("ﷺ" * 50_000)) <= 5 * SEARCHED_CHARACTERS
    assert len(plain("한" * SEARCHED_CHARACTERS)) == SEARCHED_CHARACTERS


@pytest.mark.parametrize("before", ["ﷺ" * 500, "e\u0301" * 2_000, "한" * 3_000, "ß " * 2_000, "\u05b0\u0591" * 4_000])
def test_the_place_of_a_hit_is_found_whatever_stands_before_it(before: str) -> None:
    made = Wanted.of("cafe").excerpt(f"{before} the Café here " + "word " * 100)

    assert "the Café here word" in made


@pytest.mark.parametrize("query", ["´", "\u0301", "¨ ¸", "\x1f"])
def test_a_query_without_a_letter_is_refused_by_name(query: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        Wanted.of(query)

    assert refused.value.field == "q"
