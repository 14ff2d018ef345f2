"""Writing into channels: every change takes the next number of its channel and is told after the commit."""

from __future__ import annotations

from collections.abc import Awaitable

from popagent_chat.channels import store
from popagent_chat.channels.store import MessageRow
from popagent_db.pool import Connection
from popagent_proto.chat.channels import (
    AuthorKind,
    ChannelMessageNotFoundError,
    ChannelNotFoundError,
    RunState,
)
from popagent_rows.outbox import Outbox


async def lock_channel(conn: Connection, channel_id: str) -> str:
    """Hold the channel's numbers until the transaction ends, and return its title.

    Raises:
        ChannelNotFoundError: There is none.
    """
    title = await store.LOCK.first(conn, channel_id)
    if title is None:
        raise ChannelNotFoundError
    return title


async def locked_message(conn: Connection, channel_id: str, message_id: str) -> MessageRow:
    """Return a message that nobody changes until the transaction ends.

    Raises:
        ChannelNotFoundError, ChannelMessageNotFoundError: There is none.
    """
    await lock_channel(conn, channel_id)
    row = await store.MESSAGE.first(conn, message_id)
    if row is None or row.channel_id != channel_id:
        raise ChannelMessageNotFoundError
    return row


async def add(
    conn: Connection,
    outbox: Outbox,
    *,
    message_id: str,
    channel_id: str,
    author: tuple[AuthorKind, str, str],
    body: str,
    thread_id: str | None = None,
    mentions: list[str] | None = None,
    workspace_id: str | None = None,
    run: tuple[RunState, str | None] | None = None,
    of_task: tuple[str, int, str] | None = None,
) -> MessageRow | None:
    """Store a message in a channel that the caller has locked; `of_task` is a task, its attempt and a kind of news.

    None when that was posted already.
    """
    state, agent_id = run or (None, None)
    task_id, attempt, kind = of_task or (None, None, None)
    row = await store.INSERT.first(
        conn,
        message_id,
        channel_id,
        thread_id,
        *author,
        body,
        mentions or [],
        workspace_id,
        state,
        agent_id,
        task_id,
        attempt,
        kind,
    )
    if row is not None:
        await outbox.add(conn, row.news)
    return row


async def told(conn: Connection, outbox: Outbox, change: Awaitable[MessageRow]) -> MessageRow:
    """Carry out a change and store the event that tells of it."""
    row = await change
    await outbox.add(conn, row.news)
    return row
