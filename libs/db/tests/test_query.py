from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import asyncpg
import pytest
from pydantic import BaseModel

import popagent_db
from popagent_db.migrate import migrate
from popagent_db.pool import Pool
from popagent_db.query import ColumnMismatchError, Query, prepare_all, queries_of
from popagent_proto.base import View


@dataclass(frozen=True)
class Pair:
    name: str
    size: int = 0


class Stored(BaseModel):
    name: str
    tags: list[str]


class Nested(View):
    page_count: int


class Page(View):
    folder_id: str
    detail: Nested


NAMES = Query(Pair, "select name, length(name) as size from unnest($1::text[]) as given (name) order by name")
COUNT = Query(int, "select count(*) from unnest($1::text[])")


async def test_rows_become_objects_by_column_name(pool: Pool) -> None:
    async with pool.acquire() as conn:
        rows = await NAMES.all(conn, ["bb", "a"])
        first = await NAMES.first(conn, [])
        one = await NAMES.one(conn, ["ccc"])
        count = await COUNT.value(conn, ["a", "b"])

    assert rows == [Pair("a", 1), Pair("bb", 2)]
    assert first is None
    assert one == Pair("ccc", 3)
    assert count == 2


async def test_no_row_where_one_was_promised_is_a_lookup_error(pool: Pool) -> None:
    async with pool.acquire() as conn:
        with pytest.raises(LookupError):
            await NAMES.one(conn, [])


async def test_json_columns_are_python_objects_in_models_too(pool: Pool) -> None:
    stored = Query(Stored, "select $1::jsonb ->> 'name' as name, $1::jsonb -> 'tags' as tags")
    wire = Query(Page, """select 'f1' as folder_id, '{"pageCount": 3}'::jsonb as detail""")
    back = Query(dict, "select $1::json")

    async with pool.acquire() as conn:
        row = await stored.one(conn, {"name": "é", "tags": ["x"]})
        page = await wire.one(conn)
        same = await back.one(conn, {"deep": [1, None, {"a": "ü"}]})

    assert row == Stored(name="é", tags=["x"])
    assert page == Page(folder_id="f1", detail=Nested(page_count=3))
    assert same == {"deep": [1, None, {"a": "ü"}]}


async def test_a_missing_or_unknown_column_says_which(pool: Pool) -> None:
    wrong = Query(Pair, "select 'a' as title, 1 as size")

    async with pool.acquire() as conn:
        with pytest.raises(ColumnMismatchError, match="Pair needs name; Pair has no title"):
            await wrong.one(conn)


async def test_run_counts_touched_rows(pool: Pool) -> None:
    make = Query(None, "create table things (name text primary key, size integer)")
    insert = Query(None, "insert into things (name, size) values ($1, $2)")
    grow = Query(None, "update things set size = size + 1 where size < $1")

    async with pool.transaction() as conn:
        made = await make.run(conn)
        await insert.run_many(conn, [("a", 1), ("b", 2), ("c", 9)])
        grown = await grow.run(conn, 5)

    assert (made, grown) == (0, 2)


async def test_a_statement_for_no_rows_leaves_the_connection_as_it_was(pool: Pool) -> None:
    nothing = Query(None, "select $1::text where false")

    async with pool.acquire() as conn:
        await nothing.run_many(conn, [])
        async with conn.transaction(isolation="repeatable_read", readonly=True):
            assert await Query(int, "select 1").value(conn) == 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package whose queries fit no schema."""
    package = tmp_path / "popagent_sample"
    (package / "slice").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "slice" / "__init__.py").write_text("")
    (package / "slice" / "store.py").write_text(
        "from popagent_db.query import Query\n"
        "FINE = Query(int, 'select 1')\n"
        "GONE = Query(str, 'select name from no_such_table')\n"
        "NAIVE = Query(str, 'select localtimestamp as at')\n"
        "UNREAD = Query(None, 'select 1 as one')\n"
        "class Rows:\n"
        "    def __init__(self):\n"
        "        self.inner = Query(int, 'select 1, 2')\n"
        "HELD = Rows()\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("popagent_sample")
    for name in [name for name in sys.modules if name.startswith("popagent_sample")]:
        del sys.modules[name]


async def test_the_contract_test_names_every_query_that_does_not_fit(pool: Pool, store: ModuleType) -> None:
    async with pool.acquire() as conn:
        with pytest.raises(ColumnMismatchError) as caught:
            await prepare_all(conn, store)

    faults = str(caught.value).splitlines()
    assert [fault.split(":")[0].removeprefix("popagent_sample.slice.store.") for fault in faults] == [
        "GONE",
        "HELD.inner",
        "NAIVE",
        "UNREAD",
    ]


async def test_our_own_queries_fit_a_migrated_schema(pool: Pool, chat_dsn: str, folder: Path) -> None:
    await migrate(chat_dsn, "chat", folder)

    async with pool.acquire() as conn:
        assert await prepare_all(conn, popagent_db) == len(queries_of(popagent_db)) > 5


async def test_other_errors_of_postgresql_pass_unchanged(pool: Pool) -> None:
    async with pool.acquire() as conn:
        with pytest.raises(asyncpg.DivisionByZeroError):
            await conn.fetchval("select 1 / 0")
