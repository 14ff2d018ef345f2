"""Rows of sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import BaseModel

from popagent_chat.threads import store as threads
from popagent_db.query import Query
from popagent_proto.chat.sessions import MessageHit, SessionItem, SessionSummary
from popagent_telemetry import redact


class SessionRow(SessionSummary):
    """A session with the version of its last event."""

    version: int

    def summary(self) -> SessionSummary:
        """Return what the wire shows."""
        shown = self.model_dump(exclude={"version"}) | {"title": redact(self.title)}
        return SessionSummary.model_validate(shown)

    def item(self, match: MessageHit | None = None) -> SessionItem:
        """Return the row of a list, with where a search matched."""
        return SessionItem(**self.summary().model_dump(), match=match)


# A session and its thread are one thing with one id: $1 to $3 are the thread's. Wherever a title is stored, its folded
# form is stored with it.
INSERT: Final = Query(
    SessionRow,
    f"""
    with thread as ({threads.CREATE.sql})
    insert into sessions (id, title, title_locked, workspace_id, folded_title, revision, version)
    values ($1, $4, $5, $6, $7, 0, 0)
    on conflict (id) do nothing
    returning id, title, title_locked, workspace_id, archived_at, revision, version, running_turn_id,
        last_turn_state, created_at, updated_at
    """,
)

# A session that is leaving is gone for everybody but who deletes it.
GET: Final = Query(
    SessionRow,
    """
    select id, title, title_locked, workspace_id, archived_at, revision, version, running_turn_id,
        last_turn_state, created_at, updated_at
    from sessions
    where id = $1 and leaving_at is null
    """,
)

# Whatever changes a session takes this lock first, so that changes of one session happen one after another.
LOCK: Final = Query(SessionRow, f"{GET.sql} for update")

# Keyset on (updated_at, id): $3 and $4 are those of the last row seen, null on the first page.
LIST: Final = Query(
    SessionRow,
    """
    select id, title, title_locked, workspace_id, archived_at, revision, version, running_turn_id,
        last_turn_state, created_at, updated_at
    from sessions
    where (archived_at is not null) = $1
        and leaving_at is null
        and ($2::text is null or workspace_id = $2)
        and ($3::timestamptz is null or (updated_at, id) < ($3, $4::text))
    order by updated_at desc, id desc
    limit $5
    """,
)

# $5: messages are taken away, among them perhaps the answer that failed.
EDIT: Final = Query(
    SessionRow,
    """
    update sessions
    set title = coalesce($2, title),
        folded_title = coalesce($4, folded_title),
        title_locked = title_locked or $2 is not null,
        archived_at = case $3::boolean when true then clock_timestamp() when false then null else archived_at end,
        last_turn_state = case when $5 then null else last_turn_state end,
        revision = revision + 1,
        version = version + 1,
        updated_at = clock_timestamp()
    where id = $1
    returning id, title, title_locked, workspace_id, archived_at, revision, version, running_turn_id,
        last_turn_state, created_at, updated_at
    """,
)

# Another branch is shown: a change, and no activity that would move the session in the list.
REVISE: Final = Query(
    SessionRow,
    """
    update sessions
    set revision = revision + 1, version = version + 1, last_turn_state = null
    where id = $1
    returning id, title, title_locked, workspace_id, archived_at, revision, version, running_turn_id,
        last_turn_state, created_at, updated_at
    """,
)

DELETE: Final = Query(None, "delete from sessions where id = $1")

LEAVE: Final = Query(None, "update sessions set leaving_at = clock_timestamp(), version = version + 1 where id = $1")

IS_LEAVING: Final = Query(bool, "select exists (select 1 from sessions where id = $1 and leaving_at is not null)")

LEAVING: Final = Query(
    str, "select id from sessions where leaving_at < clock_timestamp() - $1::interval order by leaving_at limit 100"
)

# How many messages go with a session, those of its specialists too; a thread counts what it ever held.
HOW_LONG: Final = Query(
    int,
    """
    select coalesce(sum(next_seq - 1), 0)::bigint
    from threads
    where id = $1 or id in (select thread_id from delegations where session_id = $1)
    """,
)


class SessionOfWorkspace(BaseModel):
    """A session that is to be deleted with all others of its workspace; a leaving one is half gone."""

    id: str
    title: str
    leaving: bool


# Made until $2; in the order of ids, so that a walk ends, whatever happens to sessions meanwhile.
OF_WORKSPACE: Final = Query(
    SessionOfWorkspace,
    """
    select id, title, leaving_at is not null as leaving
    from sessions
    where workspace_id = $1 and created_at <= $2 and id > $3
    order by id
    limit $4
    """,
)


class SessionsNow(BaseModel):
    """How many sessions a workspace has at the moment `now`."""

    now: datetime
    total: int


COUNT_NOW: Final = Query(
    SessionsNow,
    "select clock_timestamp() as now, count(*)::int as total from sessions where workspace_id = $1",
)

COUNT_UNTIL: Final = Query(int, "select count(*)::int from sessions where workspace_id = $1 and created_at <= $2")

COUNT_IN_WORKSPACE: Final = Query(int, "select count(*)::int from sessions where workspace_id = $1")
