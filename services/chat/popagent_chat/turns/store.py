"""Rows of turns, their intents and their checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel

from popagent_chat.sessions import store as sessions
from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.threads.store import StoredMessage
from popagent_db.query import Query
from popagent_proto.chat.turns import TurnState, TurnView
from popagent_rows import outbox
from popagent_rows.leased import FENCE, LeasedRow, LeasedRows

# DESIGN §4: the lease, how often it is prolonged. The sweep looks every second.
LEASE_S: Final = 10.0
BEAT_S: Final = 3.0
# The constraint that makes a turn's id belong to one session.
KEY: Final = "turns_pkey"
IN_WORKSPACE: Final = "sessions_workspace_id_fkey"


@dataclass(frozen=True, kw_only=True)
class LeasedTurn(LeasedRow):
    """A turn as its owner needs it."""

    session_id: str
    user_message_id: str
    assistant_message_id: str
    model: str | None
    trace_headers: dict[str, str]
    trace_id: str | None
    checkpoint: dict[str, Any] | None
    next_chunk: int
    created_at: datetime


TURNS: Final = LeasedRows("turns", LeasedTurn, lease_s=LEASE_S, beat_s=BEAT_S)


@dataclass(frozen=True, kw_only=True)
class TurnRow:
    """A turn as everybody else sees it."""

    id: str
    session_id: str
    user_message_id: str
    assistant_message_id: str
    state: TurnState
    attempt: int
    trace_id: str | None
    checkpoint: dict[str, Any] | None
    next_chunk: int
    ending: dict[str, Any] | None

    def view(self, *, created: bool) -> TurnView:
        """Return what the wire shows."""
        return TurnView(
            turn_id=self.id,
            session_id=self.session_id,
            message_id=self.assistant_message_id,
            state=self.state,
            created=created,
        )


GET: Final = Query(
    TurnRow,
    """
    select id, session_id, user_message_id, assistant_message_id, state, attempt, trace_id, checkpoint, next_chunk,
        ending
    from turns
    where id = $1
    """,
)


class Seen(BaseModel):
    """What is stored at one moment, `now`, about the session of a turn that is to start."""

    now: datetime
    session: SessionRow | None
    turn: TurnRow | None
    message: StoredMessage | None
    head_id: str | None
    workspace_id: str | None


# $1 names the session, $2 the turn, $3 the message; $4 the workspace, or the default one.
SEEN: Final = Query(
    Seen,
    f"""
    select
        clock_timestamp() as now,
        (select to_json(x) from ({sessions.GET.sql}) x) as session,
        (select to_json(x) from ({GET.sql.replace("$1", "$2")}) x) as turn,
        (select to_json(x) from ({threads.FIND.sql.replace("$2", "$3")}) x) as message,
        ({threads.HEAD.sql}) as head_id,
        (select id from workspaces where case when $4::text is null then is_default else id = $4 end) as workspace_id
    """,
)

# All of a start, if the session is still the one that was seen: of version $2, or none where $2 is null.
# A turn with a free slot at hand is running from the start: $24 is then its owner, else null.
START: Final = Query(
    LeasedTurn,
    f"""
    with changed as (
        update sessions
        set running_turn_id = $7, last_turn_state = null, title = $3, folded_title = $4, version = version + 1,
            updated_at = $6
        where id = $1 and version = $2
        returning id
    ), created as (
        insert into sessions (
            id, title, folded_title, title_locked, workspace_id, revision, version, running_turn_id,
            created_at, updated_at
        )
        select $1, $3, $4, false, $5, 0, 1, $7, $6, $6
        where $2::bigint is null
        on conflict (id) do nothing
        returning id
    ), session as (
        select id from changed
        union all
        select id from created
    ), thread as (
        -- A turn that answers a stored message again has no new one, but that is the head again.
        insert into threads as known (id, kind, resource, head_id, next_seq)
        select id, 'session', '{threads.RESOURCE}', $8, 2 from session
        on conflict (id) do update
        set head_id = $8, next_seq = known.next_seq + case when $11::json is null then 0 else 1 end
        returning id, next_seq - 1 as seq
    ), {threads.insert_from("thread", 8)}, told as (
        {outbox.insert_from("session", 15)}
    )
    insert into turns (
        id, session_id, user_message_id, assistant_message_id, model, trace_headers, trace_id,
        state, attempt, owner, boot_id, lease_until
    )
    select
        $7, id, $8, $20, $21, $22, $23,
        case when $24::uuid is null then 'queued' else 'running' end, case when $24 is null then 0 else 1 end, $24, $25,
        case when $24 is null then null else clock_timestamp() + make_interval(secs => {LEASE_S}) end
    from session
    returning id, attempt, owner, boot_id, stop_requested, session_id, user_message_id, assistant_message_id, model,
        trace_headers, trace_id, checkpoint, next_chunk, created_at
    """,
)

LIVE_OF_SESSION: Final = Query(
    TurnRow,
    """
    select id, session_id, user_message_id, assistant_message_id, state, attempt, trace_id, checkpoint, next_chunk,
        ending
    from turns
    where session_id = $1 and state in ('queued', 'running')
    """,
)

# The newest turn that answered this message; a repeated submit is that turn again.
NEWEST_FOR_MESSAGE: Final = Query(
    TurnRow,
    """
    select id, session_id, user_message_id, assistant_message_id, state, attempt, trace_id, checkpoint, next_chunk,
        ending
    from turns
    where session_id = $1 and user_message_id = $2
    order by created_at desc
    limit 1
    """,
)

REQUEST_STOP: Final = Query(
    TurnRow,
    """
    update turns
    set stop_requested = true
    where session_id = $1 and state in ('queued', 'running')
    returning id, session_id, user_message_id, assistant_message_id, state, attempt, trace_id, checkpoint, next_chunk,
        ending
    """,
)

CHECKPOINT: Final = Query(None, f"update turns set checkpoint = $4, next_chunk = $5 where {FENCE}")


class SessionNow(BaseModel):
    """A session as it is stored at the moment `now`."""

    now: datetime
    session: SessionRow | None


SESSION_NOW: Final = Query(
    SessionNow,
    f"select clock_timestamp() as now, (select to_json(x) from ({sessions.GET.sql}) x) as session",
)


@dataclass(frozen=True)
class Ended:
    """Whether the turn was held by who ended it, and whether that is stored: the session was the one that was seen."""

    held: bool
    stored: bool


# All of an end, under the fence, if the session $4 is still of version $5.
END: Final = Query(
    Ended,
    f"""
    with held as (
        select id from turns where {FENCE} for no key update
    ), session as (
        update sessions
        set running_turn_id = null, last_turn_state = $19, version = version + 1, updated_at = $6
        from held
        where sessions.id = $4 and version = $5
        returning sessions.id
    ), thread as (
        update threads
        set next_seq = next_seq + 1, head_id = $7
        from session
        where threads.id = session.id
        returning threads.id, next_seq - 1 as seq
    ), {threads.insert_from("thread", 7)}, told as (
        {outbox.insert_from("session", 14)}
    ), ended as (
        update turns
        set state = $19, ending = $20, next_chunk = $21, error_class = $22, input_tokens = $23, output_tokens = $24,
            checkpoint = null, owner = null, lease_until = null, ended_at = clock_timestamp()
        from session
        where turns.id = $1
    )
    select exists (select 1 from held) as held, exists (select 1 from session) as stored
    """,
)

INTENT: Final = Query(
    None,
    f"""
    insert into turn_intents (turn_id, attempt, step, call_id, tool, arguments)
    select id, attempt, $4, $5, $6, $7 from turns where {FENCE}
    """,
)

HAS_INTENTS: Final = Query(bool, "select exists (select 1 from turn_intents where turn_id = $1)")
