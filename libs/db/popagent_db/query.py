"""Typed SQL constants, and the check that each of them fits the migrated schema."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final, Generic, TypeVar, cast, overload

import asyncpg
from pydantic import BaseModel

from popagent_db.pool import Connection, translated

T = TypeVar("T")


class ColumnMismatchError(TypeError):
    """A query's result columns are not the fields of its row type."""


class Query(Generic[T]):
    """One statement and the type of its rows: a pydantic model, a dataclass, a scalar type, or None for no rows.

    Rows become models by column name; a scalar query has one column.
    """

    @overload
    def __init__(self: Query[None], row: None, sql: str) -> None: ...
    @overload
    def __init__(self, row: type[T], sql: str) -> None: ...
    def __init__(self, row: type[Any] | None, sql: str) -> None:
        self.row = row
        self.sql = inspect.cleandoc(sql)
        self._fields = None if row is None else RowFields.of(row)
        self._checked = False

    def __repr__(self) -> str:
        return f"Query({'None' if self.row is None else self.row.__name__}, {self.sql[:60]!r})"

    async def one(self, connection: Connection, *args: object) -> T:
        """Return the first row; raises LookupError when there is none."""
        found = await connection.fetchrow(self.sql, *args)
        if found is None:
            raise LookupError(f"no row: {self!r}")
        return self._build(found)

    async def first(self, connection: Connection, *args: object) -> T | None:
        """Return the first row, or None."""
        found = await connection.fetchrow(self.sql, *args)
        return None if found is None else self._build(found)

    async def all(self, connection: Connection, *args: object, timeout_s: float | None = None) -> list[T]:
        """Return every row; the statement itself holds the limit. `timeout_s` is shorter than the connection's."""
        return [self._build(found) for found in await connection.fetch(self.sql, *args, timeout=timeout_s)]

    async def value(self, connection: Connection, *args: object) -> T:
        """Return the scalar of a query that always gives one row, such as a count."""
        if self._fields is not None:
            raise TypeError(f"not a scalar query: {self!r}")
        return cast("T", await connection.fetchval(self.sql, *args))

    async def run(self, connection: Connection, *args: object) -> int:
        """Carry out the statement and return how many rows it touched."""
        return rows_of(await connection.execute(self.sql, *args))

    async def run_many(self, connection: Connection, rows: Iterable[Sequence[object]]) -> None:
        """Carry out the statement once for each of `rows`, all or nothing, in one round trip."""
        listed = list(rows)
        # For no rows the driver sends the statement without its end, and the next holder is still within it.
        if listed:
            await connection.executemany(self.sql, listed)

    def mismatches(self, columns: Sequence[str]) -> list[str]:
        """Say what is wrong with these result columns; empty when they fit."""
        if self.row is None:
            return [f"returns {', '.join(columns)} and has no row type"] if columns else []
        if self._fields is None:
            return [] if len(columns) == 1 else [f"a scalar query has one column, not {len(columns)}"]
        return self._fields.mismatches(columns)

    def _build(self, found: asyncpg.Record) -> T:
        if not self._checked:
            if wrong := self.mismatches(list(found.keys())):
                raise ColumnMismatchError(f"{self!r}: {'; '.join(wrong)}")
            self._checked = True
        if self._fields is None:
            return cast("T", found[0])
        return cast("T", self._fields.build(found))


def rows_of(tag: str) -> int:
    """Return the count at the end of a command tag such as `UPDATE 3`; 0 where it has none."""
    last = tag.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else 0


@dataclasses.dataclass(frozen=True)
class RowFields:
    """The field names of a row type, and how to make one."""

    row: type[Any]
    required: frozenset[str]
    known: frozenset[str]

    @classmethod
    def of(cls, row: type[Any]) -> RowFields | None:
        """Return the fields of a model or dataclass; None for a scalar type."""
        if isinstance(row, type) and issubclass(row, BaseModel):
            required = {name for name, field in row.model_fields.items() if field.is_required()}
            return cls(row, frozenset(required), frozenset(row.model_fields))
        if dataclasses.is_dataclass(row):
            fields = [field for field in dataclasses.fields(row) if field.init]
            missing = dataclasses.MISSING
            required = {f.name for f in fields if f.default is missing and f.default_factory is missing}
            return cls(row, frozenset(required), frozenset(field.name for field in fields))
        return None

    def mismatches(self, columns: Sequence[str]) -> list[str]:
        """Say which columns are missing, unknown or doubled."""
        found = set(columns)
        wrong = []
        if missing := self.required - found:
            wrong.append(f"{self.row.__name__} needs {', '.join(sorted(missing))}")
        if unknown := found - self.known:
            wrong.append(f"{self.row.__name__} has no {', '.join(sorted(unknown))}")
        if len(found) < len(columns):
            wrong.append("a column name appears twice")
        return wrong

    def build(self, found: asyncpg.Record) -> Any:
        """Make the object of one row; stored JSON inside it may use wire names or field names."""
        if issubclass(self.row, BaseModel):
            return self.row.model_validate(dict(found), by_alias=True, by_name=True)
        return self.row(**found)


def queries_of(package: ModuleType) -> dict[str, Query[Any]]:
    """Import every module of `package` and return its Query constants by dotted name.

    Constants inside another constant (a LeasedRows, for example) are found too; tests are not.
    """
    found: dict[int, tuple[str, Query[Any]]] = {}
    for module in _modules(package):
        for name, value in vars(module).items():
            for suffix, query in _queries_in(value):
                found.setdefault(id(query), (f"{module.__name__}.{name}{suffix}", query))
    return dict(sorted(found.values(), key=lambda pair: pair[0]))


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for info in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _queries_in(value: object) -> Iterator[tuple[str, Query[Any]]]:
    if isinstance(value, Query):
        yield "", value
    elif not isinstance(value, type | ModuleType) and type(value).__module__.startswith("popagent_"):
        for name, inner in getattr(value, "__dict__", {}).items():
            if isinstance(inner, Query):
                yield f".{name}", inner


NAIVE_TIME: Final = "timestamp"


async def prepare(connection: Connection, queries: Mapping[str, Query[Any]]) -> list[str]:
    """Prepare each statement and return what is wrong, one line a fault; empty when all of them fit the schema."""
    faults = []
    for name, query in queries.items():
        try:
            async with translated(connection):
                statement = await connection.prepare(query.sql)
        except asyncpg.PostgresError as error:
            faults.append(f"{name}: {error}")
            continue
        columns = statement.get_attributes()
        faults += [f"{name}: {wrong}" for wrong in query.mismatches([column.name for column in columns])]
        faults += [
            f"{name}: column {column.name} is a timestamp without time zone"
            for column in columns
            if column.type.name == NAIVE_TIME
        ]
    return faults


async def prepare_all(connection: Connection, package: ModuleType) -> int:
    """Check every Query of `package` against the schema that `connection` sees; returns how many there are.

    Raises:
        ColumnMismatchError: The message names every query that does not fit, and why.
    """
    queries = queries_of(package)
    if faults := await prepare(connection, queries):
        raise ColumnMismatchError("\n".join(faults))
    return len(queries)
