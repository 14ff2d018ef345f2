from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_docs_indexer.search.snippets import LONGEST, snippet
from popagent_docs_indexer.search.words import LONGEST_TERM, placed, terms_of


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cats’ CATS, Bögen!", ["the", "cat", "cat", "bogen"]),
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("snake_case_name", ["snake", "case", "name", "snake_case_name"]),
        ("--no-verify", ["no", "verify", "no-verify"]),
        ("os.path.join(a)", ["os", "path", "join", "os.path.join", "a"]),
        ("C++ and C#, F#", ["c", "c++", "and", "c", "c#", "f", "f#"]),
        ("日本語を", ["日本", "本語", "語を"]),
        ("漢", ["漢"]),
        ("Python3で書く", ["python3", "で書", "書く"]),
        ("classes bus glasses series", ["classe", "bus", "glasse", "sery"]),
        ("Straße ΣΑΣ", ["strasse", "σασ"]),
        ("नमस्ते, दुनिया", ["नमस्ते", "दुनिया"]),
        ("... --- !!! 👩‍💻", []),
        ("x" * 100, ["x" * LONGEST_TERM]),
    ],
)
def test_terms_of_a_text(text: str, terms: list[str]) -> None:
    assert list(terms_of(text)) == terms


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("get user", "getUserById()"),
        ("getuserbyid", "getUserById()"),
        ("max_parallel_workers", "set max_parallel_workers = 2"),
        ("CAFÉ", "cafe\u0301s"),
        ("日本", "これは日本語です"),
        ("policies", "a policy"),
        ("don't", "don’t"),
    ],
)
def test_what_is_asked_is_found_in_what_is_written(asked: str, written: str) -> None:
    assert set(terms_of(asked)) & set(terms_of(written))


@given(st.text(max_size=300))
def test_each_term_stands_where_it_is_said_to_and_is_the_same_however_often_it_is_asked(text: str) -> None:
    for term, start, end in placed(text):
        assert 0 <= start < end <= len(text)
        assert 0 < len(term) <= LONGEST_TERM
        assert term in set(terms_of(text[start:end]))


@given(st.text(max_size=700), st.lists(st.text(max_size=10), max_size=4))
def test_a_snippet_is_a_part_of_the_text(text: str, asked: list[str]) -> None:
    terms = set(terms_of(" ".join([*asked, text[5:9]])))

    parts, first = snippet(text, terms)

    shown = "".join(part.text for part in parts)
    assert shown in text
    assert len(shown) <= LONGEST
    assert 0 <= first <= len(text)
    for part in parts:
        if part.marked:
            assert set(terms_of(part.text)) & terms


def test_a_snippet_shows_where_the_most_of_the_words_stand() -> None:
    text = "alpha here. " + "filler " * 100 + "then alpha stands beside beta, and gamma." + " filler" * 100

    parts, first = snippet(text, {"alpha", "beta", "gamma"})

    assert [part.text for part in parts if part.marked] == ["alpha", "beta", "gamma"]
    assert text[first:].startswith("alpha stands")
    assert not parts[0].text.startswith("iller")
