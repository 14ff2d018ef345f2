"""The one row of the model connection, with its sealed key."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from popagent_db.query import Query

# Where the connection's key lies among the secrets.
RESOURCE: Final = "models"
NAME: Final = "connection"


class StoredConnection(BaseModel):
    """What a person chose in the page; `sealed` is the blob of its key in hexadecimal digits."""

    model_config = ConfigDict(frozen=True)

    url: str | None
    revision: int
    sealed: str | None = Field(repr=False)


NOTHING_STORED: Final = StoredConnection(url=None, revision=0, sealed=None)

GET: Final = Query(
    StoredConnection,
    f"""
    select c.url, c.revision, encode(s.sealed, 'hex') as sealed
    from model_connection c
    left join secrets s on s.resource = '{RESOURCE}' and s.name = '{NAME}'
    """,
)

LOCK: Final = Query(StoredConnection, f"{GET.sql} for update of c")

SAVE: Final = Query(
    int,
    """
    insert into model_connection (id, url, revision, updated_at)
    values (true, $1, 1, clock_timestamp())
    on conflict (id)
    do update set url = excluded.url, revision = model_connection.revision + 1, updated_at = clock_timestamp()
    returning revision
    """,
)
