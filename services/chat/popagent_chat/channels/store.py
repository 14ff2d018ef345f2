"""Rows of channels, of their messages, and of how far they were read."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from popagent_db.query import Query
from popagent_kit.text import excerpt
from popagent_proto.chat.channels import (
    AuthorKind,
    ChannelMessage,
    ChannelMessageChanged,
    ChannelRun,
    ChannelSettingsView,
    ChannelView,
    RunState,
)
from popagent_proto.task_runner.tasks import EXCERPT_CHARACTERS

# There is one key and therefore one reader.
READER: Final = "user"
MOST_UNREAD: Final = 1_000
# A task of which nothing was heard for so long is asked for.
LOOKED_AFTER_S: Final = 120


@dataclass(frozen=True)
class MessageRow:
    """A message as it is stored."""

    id: str
    channel_id: str
    seq: int
    revision: int
    thread_id: str | None
    author_kind: AuthorKind
    author_id: str
    author_name: str
    body: str
    mentions: list[str]
    workspace_id: str | None
    run_state: RunState | None
    run_agent_id: str | None
    run_version: int
    run_note: str
    task_id: str | None
    edited_at: datetime | None
    deleted_at: datetime | None
    created_at: datetime

    @property
    def view(self) -> ChannelMessage:
        """What is shown of it."""
        run = None
        if self.run_state is not None:
            run = ChannelRun(task_id=self.id, agent_id=self.run_agent_id, state=self.run_state, note=self.run_note)
        shown = {name: getattr(self, name) for name in ChannelMessage.model_fields if name != "run"}
        return ChannelMessage(**shown, run=run)

    @property
    def news(self) -> ChannelMessageChanged:
        """What is told of its newest change."""
        return ChannelMessageChanged(
            aggregate_id=self.id,
            version=self.revision,
            channel_id=self.channel_id,
            message_id=self.id,
            seq=self.seq,
            thread_id=self.thread_id,
            author_kind=self.author_kind,
            run_state=self.run_state,
            task_id=self.task_id,
            deleted=self.deleted_at is not None,
            excerpt=excerpt(self.body, EXCERPT_CHARACTERS),
        )


COLUMNS: Final = ", ".join(field.name for field in fields(MessageRow))


def _of(alias: str) -> str:
    return ", ".join(f"{alias}.{field.name}" for field in fields(MessageRow))


_CHANNEL: Final = f"""
    select c.id, c.title, c.last_seq, coalesce(r.last_read_seq, 0) as last_read_seq, c.revision, c.created_at,
        (
            select count(*)
            from (
                select 1
                from channel_messages m
                where m.channel_id = c.id and m.seq > coalesce(r.last_read_seq, 0) and m.author_kind <> 'user'
                    and m.deleted_at is null
                limit {MOST_UNREAD}
            ) others
        )::int as unread
    from channels c
    left join channel_cursors r on r.channel_id = c.id and r.reader = '{READER}'"""

LIST: Final = Query(ChannelView, f"{_CHANNEL} order by c.title, c.id limit 200")

GET: Final = Query(ChannelView, f"{_CHANNEL} where c.id = $1")

# Held from the number to the commit: who has seen a number has seen all before it.
LOCK: Final = Query(str, "select title from channels where id = $1 for update")

REVISION: Final = Query(int, "select revision from channels where id = $1")

SETTINGS: Final = Query(ChannelSettingsView, "select auto_reply, agent_id, revision, updated_at from channel_settings")

LOCK_SETTINGS: Final = Query(ChannelSettingsView, f"{SETTINGS.sql} for update")

UPDATE_SETTINGS: Final = Query(
    ChannelSettingsView,
    """
    update channel_settings
    set auto_reply = $1, agent_id = $2, revision = revision + 1, updated_at = clock_timestamp()
    returning auto_reply, agent_id, revision, updated_at
    """,
)

MESSAGE: Final = Query(MessageRow, f"select {COLUMNS} from channel_messages where id = $1")

# $4 bounds the bytes of the page, of which one message comes in any case.
HISTORY: Final = Query(
    MessageRow,
    f"""
    select {COLUMNS}
    from (
        select m.*, sum(octet_length(m.body) + 1024) over (order by m.seq desc) as bytes,
            row_number() over (order by m.seq desc) as place
        from (
            select *
            from channel_messages
            where channel_id = $1 and ($2::bigint is null or seq < $2)
                and ($5::text is null or thread_id = $5 or id = $5)
            order by seq desc
            limit $3
        ) m
    ) page
    where bytes <= $4 or place = 1
    order by seq
    """,
)

BEFORE: Final = Query(
    bool,
    """
    select exists (
        select 1
        from channel_messages
        where channel_id = $1 and seq < $2 and ($3::text is null or thread_id = $3 or id = $3)
    )
    """,
)

CHANGES: Final = Query(
    MessageRow,
    f"""
    select {COLUMNS}
    from (
        select m.*, sum(octet_length(m.body) + 1024) over (order by m.revision) as bytes,
            row_number() over (order by m.revision) as place
        from (
            select *
            from channel_messages
            where channel_id = $1 and revision > $2
            order by revision
            limit $3
        ) m
    ) page
    where bytes <= $4 or place = 1
    order by revision
    """,
)


@dataclass(frozen=True)
class Posted:
    """What was posted within a minute, and after how many seconds the first of it is no longer."""

    posts: int
    oldest_ends_s: float


POSTED: Final = Query(
    Posted,
    """
    select count(*)::int as posts,
        coalesce(60 - extract(epoch from clock_timestamp() - min(created_at)), 0)::float8 as oldest_ends_s
    from (
        select created_at
        from channel_messages
        where author_kind = 'user' and created_at > clock_timestamp() - interval '1 minute'
        order by created_at desc
        limit $1
    ) newest
    """,
)

# Takes the next numbers of the channel, whose row the caller has locked. None: what the task has to say was posted.
INSERT: Final = Query(
    MessageRow,
    f"""
    with numbered as (
        update channels set last_seq = last_seq + 1, revision = revision + 1
        where id = $2 and not exists (
            select 1 from channel_messages where task_id = $12 and task_attempt = $13 and task_kind = $14
        )
        returning last_seq, revision
    )
    insert into channel_messages (
        id, channel_id, seq, revision, thread_id, author_kind, author_id, author_name, body, mentions, workspace_id,
        run_state, run_agent_id, run_at, task_id, task_attempt, task_kind
    )
    select $1, $2, last_seq, revision, $3, $4, $5, $6, $7, $8, $9, $10, $11,
        case when $10 = 'waiting' then clock_timestamp() end, $12, $13, $14
    from numbered
    returning {COLUMNS}
    """,
)

_CHANGED: Final = """
    with numbered as (
        update channels set revision = revision + 1 where id = $1 returning revision
    )
    update channel_messages m
    set revision = numbered.revision, """

EDIT: Final = Query(
    MessageRow,
    f"""{_CHANGED} body = $3, edited_at = clock_timestamp()
    from numbered
    where m.id = $2
    returning {_of("m")}
    """,
)

# Its workspace is no longer referred to.
DELETE: Final = Query(
    MessageRow,
    f"""{_CHANGED} body = '', mentions = '{{}}', workspace_id = null, run_note = '', deleted_at = clock_timestamp()
    from numbered
    where m.id = $2
    returning {_of("m")}
    """,
)

# $3 state, $4 note, $5 the version of the task; the caller has found that it is newer.
SET_RUN: Final = Query(
    MessageRow,
    f"""{_CHANGED} run_state = $3, run_note = $4, run_version = $5,
        run_at = clock_timestamp() + interval '{LOOKED_AFTER_S} seconds'
    from numbered
    where m.id = $2
    returning {_of("m")}
    """,
)


# The same state, told by a newer version: nothing to show.
KEEP_RUN: Final = Query(None, "update channel_messages set run_version = $2 where id = $1")


@dataclass(frozen=True)
class WaitingRun:
    """A message whose task is to be made."""

    id: str
    channel_id: str
    seq: int
    thread_id: str | None
    body: str
    workspace_id: str | None
    run_agent_id: str | None
    run_tries: int


PROBE_WAITING: Final = (
    "exists (select 1 from channel_messages where run_state = 'waiting' and run_at <= clock_timestamp())"
)

# Whoever takes them has them for $2 seconds; after that another may.
TAKE_WAITING: Final = Query(
    WaitingRun,
    """
    update channel_messages
    set run_tries = run_tries + 1, run_at = clock_timestamp() + make_interval(secs => $2)
    where id in (
        select id
        from channel_messages
        where run_state = 'waiting' and run_at <= clock_timestamp()
        order by run_at
        limit $1
        for update skip locked
    )
    returning id, channel_id, seq, thread_id, body, workspace_id, run_agent_id, run_tries
    """,
)

# Whoever takes them asks for their tasks; they are asked for again after a while.
TAKE_SILENT: Final = Query(
    str,
    f"""
    update channel_messages set run_at = clock_timestamp() + interval '{LOOKED_AFTER_S} seconds'
    where id in (
        select id
        from channel_messages
        where run_state in ('queued', 'running', 'cancelling') and run_at <= clock_timestamp()
        order by run_at
        limit $1
        for update skip locked
    )
    returning id
    """,
)

PUT_OFF: Final = Query(
    None,
    """
    update channel_messages set run_at = clock_timestamp() + make_interval(secs => $2)
    where id = $1 and run_state = 'waiting'
    """,
)

READ: Final = Query(
    None,
    f"""
    insert into channel_cursors (channel_id, reader, last_read_seq)
    select id, '{READER}', least($2, last_seq) from channels where id = $1
    on conflict (channel_id, reader) do update
    set last_read_seq = greatest(channel_cursors.last_read_seq, excluded.last_read_seq)
    """,
)

COUNT_IN_WORKSPACE: Final = Query(int, "select count(*) from channel_messages where workspace_id = $1")
