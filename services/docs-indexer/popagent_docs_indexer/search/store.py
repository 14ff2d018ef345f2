"""Chunks and postings: how pages are put into the index, taken out of it, and found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from popagent_db.query import Query
from popagent_docs_indexer.tree.store import BELOW

_LIBRARY: Final = "(select number from libraries where workspace_id = {})"

# Ids rise with the number of the chunk.
ADD_CHUNKS: Final = Query(
    int,
    f"""
    insert into chunks (page_id, library, number, body, sections, words)
    select $1, {_LIBRARY.format("$2")}, c.number, c.body, c.sections::jsonb, c.words
    from unnest($3::integer[], $4::text[], $5::text[], $6::integer[]) c (number, body, sections, words)
    order by c.number
    returning id
    """,
)
ADD_POSTINGS: Final = Query(
    None,
    f"""
    insert into postings (library, term, chunk_id, occurrences, words)
    select {_LIBRARY.format("$1")}, term, chunk_id, occurrences, words
    from unnest($2::text[], $3::bigint[], $4::integer[], $5::integer[]) p (term, chunk_id, occurrences, words)
    """,
)
ADD_VOCABULARY: Final = Query(
    None,
    f"""
    insert into vocabulary (library, word)
    select {_LIBRARY.format("$1")}, word from unnest($2::text[]) v (word)
    on conflict do nothing
    """,
)
COUNT: Final = Query(
    None,
    """
    with indexed as (
        update pages set index_version = $5 where id = $4
    )
    update libraries set chunks = chunks + $2, words = words + $3 where workspace_id = $1
    """,
)


def _drop(which: str) -> str:
    return f"""
    with gone as (
        delete from chunks where page_id in ({which}) returning id, words
    ), emptied as (
        delete from postings where chunk_id in (select id from gone)
    )
    update libraries
    set chunks = chunks - (select count(*) from gone), words = words - (select coalesce(sum(words), 0) from gone)
    where workspace_id = $1
    """


DROP_OF_PAGE: Final = Query(None, _drop("select $2"))
DROP_BELOW: Final = Query(None, _drop(f"select id from pages where {BELOW}"))


@dataclass(frozen=True)
class Scope:
    """What is searched: libraries by their numbers, how many chunks they have, and how long one is on average."""

    numbers: list[int]
    chunks: float
    length: float


SCOPE: Final = Query(
    Scope,
    """
    select coalesce(array_agg(number), '{}') as numbers, coalesce(sum(chunks), 0)::float8 as chunks,
        greatest(coalesce(sum(words), 0)::float8 / greatest(coalesce(sum(chunks), 0), 1), 1) as length
    from libraries
    where chunks > 0 and ($1::text is null or workspace_id = $1)
    """,
)


@dataclass(frozen=True)
class Ranked:
    """A chunk and how well it fits."""

    chunk_id: int
    score: float


# BM25. $2 are terms and $3 what each is worth; $4 is how many chunks there are, $5 how long one is on average.
def _ranked(found: str) -> str:
    return f"""
    with hits as materialized (
        {found}
    ), known as (
        select term, ln(1 + ($4::float8 - count(*) + 0.5) / (count(*) + 0.5)) as rarity from hits group by term
    )
    select h.chunk_id,
        sum(w.worth * k.rarity * h.occurrences * 2.2 / (h.occurrences + 1.2 * (0.4 + 0.6 * h.words / $5::float8)))
            as score
    from hits h
    join known k using (term)
    join unnest($2::text[], $3::float8[]) w (term, worth) using (term)
    group by h.chunk_id
    order by score desc, h.chunk_id
    limit $6
    """


_HITS: Final = """select p.term, p.chunk_id, p.occurrences, p.words
        from postings p
        where p.library = any($1::integer[]) and p.term = any($2::text[])"""
RANK: Final = Query(Ranked, _ranked(_HITS))
RANK_BELOW: Final = Query(
    Ranked,
    _ranked(f"""{_HITS} and exists (
            select 1 from chunks c join pages g on g.id = c.page_id
            where c.id = p.chunk_id and g.path > $7 || '/' and g.path < $7 || '0'
        )"""),
)


@dataclass(frozen=True)
class FoundChunk:
    """A chunk with what it belongs to."""

    id: int
    workspace_id: str
    page_id: str
    path: str
    title: str
    body: str
    sections: list[dict[str, Any]]


CHUNKS: Final = Query(
    FoundChunk,
    """
    select c.id, p.workspace_id, p.id as page_id, p.path, p.title, c.body, c.sections
    from chunks c
    join pages p on p.id = c.page_id
    where c.id = any($1::bigint[])
    """,
)
STANDING: Final = Query(
    str,
    """
    select term from unnest($2::text[]) w (term)
    where exists (select 1 from postings p where p.library = any($1::integer[]) and p.term = w.term)
    """,
)
# Where the extension is there; `%` and the order are its likeness.
LIKE: Final = Query(
    str,
    """
    select word
    from vocabulary v
    where library = any($1::integer[]) and word % $2::text and abs(length(word) - length($2)) <= 2
        and exists (select 1 from postings p where p.library = v.library and p.term = v.word)
    group by word
    order by similarity(word, $2) desc, word
    limit $3
    """,
)
HAS_LIKENESS: Final = Query(bool, "select to_regproc('similarity') is not null")


@dataclass(frozen=True)
class Behind:
    """A page that was indexed by older rules."""

    id: str
    workspace_id: str


BEHIND: Final = Query(
    Behind, "select id, workspace_id from pages where deleted_at is null and index_version < $1 limit $2"
)
FORGET_WORDS: Final = Query(
    None,
    """
    delete from vocabulary v
    where not exists (select 1 from postings p where p.library = v.library and p.term = v.word)
    """,
)
