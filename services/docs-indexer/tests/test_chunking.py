from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from popagent_docs_indexer.markdown import blocks
from popagent_docs_indexer.markdown.blocks import blocks_of
from popagent_docs_indexer.markdown.chunking import JOINED, LONGEST, Cut, cut
from popagent_docs_indexer.markdown.front_matter import front_matter

LINE = "word " * 12 + "\n"


def texts(text: str) -> list[str]:
    return [text[each.start : each.end] for each in cut(text).chunks]


def headings(found: Cut) -> list[tuple[str, ...]]:
    return [each.path for each in found.headings]


def test_each_section_is_a_chunk_that_knows_what_it_stands_below() -> None:
    page = f"before\n\n# One\n\n{LINE * 12}\n## Two\n\n{LINE * 12}\n# Three #\n\n{LINE * 12}"

    found = cut(page)

    assert headings(found) == [("One",), ("One", "Two"), ("Three",)]
    assert [[each.text for each in (*chunk.above, *chunk.inside)] for chunk in found.chunks] == [
        [],
        ["One"],
        ["One", "Two"],
        ["Three"],
    ]
    assert [page[each.at :].split()[1] for each in found.headings] == ["One", "Two", "Three"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Setext\n===\n\nUnder\n---\n", [("Setext",), ("Setext", "Under")]),
        ("```\n# no\n```\n~~~~\n# no\n~~~\n# no\n~~~~\n# yes\n", [("yes",)]),
        ("> # quoted\n\n- # listed\n\n    # code\n", []),
        ("<div>\n# html\n</div>\n\n# yes\n", [("yes",)]),
        ("# A `b` *c* [d](e) &amp; \\# f\n", [("A b c d & # f",)]),
        ("#no\n#\n####### no\n", [("",)]),
        ("### C\n# A\n## B\n#### D\n## E\n", [("C",), ("A",), ("A", "B"), ("A", "B", "D"), ("A", "E")]),
        ("# A\r\n\r\n## B\r\n", [("A",), ("A", "B")]),
        ("---\ntitle: x\n# no: 1\n---\n# A\n", [("A",)]),
        ("\ufeff---\ntitle: x\n---\n# A\n", [("A",)]),
        ("# עברית\n## 日本語\n", [("עברית",), ("עברית", "日本語")]),
    ],
)
def test_headings_are_those_that_a_reader_sees(text: str, wanted: list[tuple[str, ...]]) -> None:
    assert headings(cut(text)) == wanted


def test_anchors_are_those_that_a_link_to_a_heading_ends_in() -> None:
    found = cut("# What's *new*?\n# A_b – C-d\n# Same\n# Same\n# Same-1\n# Ärger 日本\n#\n")

    anchors = [each.anchor for each in found.headings]

    assert anchors == ["whats-new", "a_b--c-d", "same", "same-1", "same-1-1", "ärger-日本", ""]


def test_a_fence_a_table_and_a_list_are_kept_whole_unless_they_are_too_long() -> None:
    fence = "```python\n" + "x = 1  # no heading\n" * 50 + "```\n"
    table = "| a | b |\n|---|---|\n" + "| one | two |\n" * 80
    items = "".join(f"- item {number} {'of many words ' * 3}\n  and more\n" for number in range(60))

    found = texts(f"# A\n\n{LINE * 15}\n{fence}\n{table}\n{items}")

    assert len([each for each in found if fence in each]) == 1
    assert len([each for each in found if table in each]) == 1
    listed = [each for each in found if "- item" in each]
    assert len(listed) > 1
    assert all(each.startswith("- item") and each.rstrip().endswith("and more") for each in listed[1:])


def test_what_is_longer_than_a_chunk_is_cut_where_a_reader_would() -> None:
    sentences = texts("One two three four five six. " * 200)
    words = texts("word " * 2_000)
    japanese = texts("これは長い文です。" * 500)
    letters = texts("x" * 5_000)
    marked = texts("e\u0301" * 2_000)

    assert all(each.endswith(". ") for each in sentences)
    assert all(each.startswith("word") and each.endswith("word ") for each in words)
    assert all(each.endswith("。") for each in japanese)
    assert [len(each) for each in letters] == [1_500, 1_500, 1_500, 500]
    assert all(each[0] == "e" for each in marked)


def test_short_siblings_are_one_chunk_and_stay_with_what_they_belong_to() -> None:
    short = cut("# A\n\n## B\n\none\n\n## C\n\ntwo\n\n# D\n\nthree\n")
    apart = cut(f"# A\n\n## B\n\n{'x ' * (JOINED // 2)}\n\n## C\n\ntwo\n")

    assert [[each.text for each in chunk.inside] for chunk in short.chunks] == [["A", "B", "C", "D"]]
    assert [[each.text for each in chunk.inside] for chunk in apart.chunks] == [["A"], ["B"], ["C"]]


@pytest.mark.parametrize(
    "text", ["", "\n", " \n\t\n", "\ufeff", "---", "---\n", "---\n---\n", "a", "# A", "\r", "[a]: b\n"]
)
def test_odd_pages_are_cut_too(text: str) -> None:
    assert "".join(texts(text)) == text


PIECES = st.sampled_from(
    [
        "# A\n", "## B #\n", "B\n===\n", "text of a line ", "日本語の文。", "עברית ", "\n", "\n\n", "\r\n", "\r",
        "```\n", "~~~py\n", "    code\n", "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "- item\n", "  - inner\n",
        "1. one\n", "> quote\n", "<div>\n", "</div>\n\n", "<!-- x\n", "---\n", "***\n", "[a]: b\n",
        "e\u0301", "👩\u200d💻", "\t", "x" * 400, LINE * 8, "\u2028", "\ufeff",
    ]
)  # fmt: skip
PAGES = st.lists(PIECES, max_size=40).map("".join)


@given(st.one_of(PAGES, st.text(max_size=200)))
def test_chunks_follow_one_another_without_a_gap_and_are_never_too_long(text: str) -> None:
    found = cut(text)

    assert "".join(text[each.start : each.end] for each in found.chunks) == text
    assert all(0 < each.length <= LONGEST for each in found.chunks)
    assert [each for chunk in found.chunks for each in chunk.inside] == list(found.headings)
    for chunk in found.chunks:
        for heading in chunk.inside:
            assert chunk.start <= heading.at < chunk.end
        assert all(each.at < chunk.start for each in chunk.above)


@given(PAGES)
def test_a_fence_is_split_only_when_it_is_longer_than_a_chunk(text: str) -> None:
    found = cut(text)
    places = {each.start for each in found.chunks}

    for block in blocks_of(text):
        if block.kind in ("fence", "table") and block.end - block.start <= LONGEST:
            assert not any(block.start < place < block.end for place in places)


SIMPLE = st.lists(
    st.sampled_from(["# A\n\n", "## B\r\n", "text\n\n", "```\n# no\n```\n\n", "~~~\n```\n~~~\n\n", "more\rlines\n\n"]),
    max_size=20,
).map("".join)


@given(SIMPLE)
@settings(max_examples=50)
def test_a_page_of_too_many_lines_is_told_apart_as_any_other(text: str) -> None:
    usual = cut(text)
    most, blocks.MOST_LINES = blocks.MOST_LINES, 0  # type: ignore[misc]
    try:
        long = cut(text)
    finally:
        blocks.MOST_LINES = most  # type: ignore[misc]

    assert headings(long) == headings(usual)


HARD = [
    "x",
    "word ",
    "\n",
    "# a\n",
    "- a\n",
    "> a\n",
    "|a|b|\n|-|-|\n",
    "[",
    "```\n\n",
    "<div>\n",
    "日本語。",
    "a\n=\n",
    "*a",
]


@pytest.mark.full
@pytest.mark.parametrize("piece", HARD)
def test_no_page_of_a_million_characters_takes_long(piece: str) -> None:
    text = (piece * (1_000_000 // len(piece) + 1))[:1_000_000]
    began = time.thread_time()

    found = cut(text)

    assert found.chunks[-1].end == 1_000_000
    assert time.thread_time() - began < 20


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("---\ntitle: A\ntags: [x]\n---\nbody", {"title": "A", "tags": ["x"]}),
        ("---\r\ntitle: A\r\n...\r\n", {"title": "A"}),
        ("---\n- a\n---\n", {}),
        ("---\na: [\n---\n", {}),
        ("---\n[a]: b\n---\n", {}),
        ("---\ntitle: A\n", {}),
        ("text\n---\ntitle: A\n---\n", {}),
        ("---\na: &a [x]\nb: !!python/object/apply:os.system [ls]\n---\n", {"a": ["x"], "b": ["ls"]}),
        ("---\narchived: true\n---\n", {"archived": "true"}),
        ("---\nwhen: 2026-99-99\n---\n", {"when": "2026-99-99"}),
        ("---\n" + "[" * 5_000 + "\n---\n", {}),
    ],
)
def test_front_matter_is_a_mapping_or_none(text: str, wanted: dict[str, object]) -> None:
    assert front_matter(text) == wanted
