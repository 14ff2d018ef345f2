"""Rows of turns, their intents and their checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from popagent_db.query import Query
from popagent_proto.chat.turns import TurnState, TurnView
from popagent_rows.leased import FENCE, LeasedRow, LeasedRows

# DESIGN §4: the lease, how often it is prolonged. The sweep looks every second.
LEASE_S: Final = 10.0
BEAT_S: Final = 3.0


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


# A turn that is inserted with a free slot at hand is running from the start: $8 is then its owner, else null.
INSERT: Final = Query(
    LeasedTurn,
    f"""
    insert into turns (
        id, session_id, user_message_id, assistant_message_id, model, trace_headers, trace_id,
        state, attempt, owner, boot_id, lease_until
    )
    values (
        $1, $2, $3, $4, $5, $6, $7,
        case when $8::uuid is null then 'queued' else 'running' end, case when $8 is null then 0 else 1 end, $8, $9,
        case when $8 is null then null else clock_timestamp() + make_interval(secs => {LEASE_S}) end
    )
    returning id, attempt, owner, boot_id, stop_requested, session_id, user_message_id, assistant_message_id, model,
        trace_headers, trace_id, checkpoint, next_chunk, created_at
    """,
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

END: Final = Query(
    None,
    f"""
    update turns
    set state = $4, ending = $5, next_chunk = $6, error_class = $7, input_tokens = $8, output_tokens = $9,
        checkpoint = null, owner = null, lease_until = null, ended_at = clock_timestamp()
    where {FENCE}
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
