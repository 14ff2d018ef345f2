"""Channels: list, settings, history, post, edit, delete, and how far they were read."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.agents import store as agents
from popagent_chat.channels import store
from popagent_chat.channels.mentions import mentioned
from popagent_chat.channels.store import MessageRow
from popagent_chat.channels.writing import add, lock_channel, locked_message, told
from popagent_chat.deps import ChatDeps
from popagent_chat.workspaces.handlers import workspace_for
from popagent_db.pool import Connection
from popagent_kit.errors import InvalidInputError, KeyUsedError, RevisionConflictError
from popagent_proto.chat.agents import ORCHESTRATOR, AgentView
from popagent_proto.chat.channels import (
    BODY_CHARACTERS,
    POSTS_A_MINUTE,
    AuthorKind,
    ChannelChanges,
    ChannelHistory,
    ChannelList,
    ChannelMessage,
    ChannelNotFoundError,
    ChannelSettingsChanged,
    ChannelSettingsView,
    ChannelView,
    DeleteMessage,
    EditMessage,
    GetChannelSettings,
    ListChannels,
    MarkChannelRead,
    MessageDeletedError,
    NotYourMessageError,
    PatchChannelSettings,
    PostMessage,
    ReadChannel,
    ReadChannelChanges,
    RunState,
    TooManyPostsError,
)
from popagent_proto.patches import given_fields
from popagent_telemetry import redact

handlers = Handlers[ChatDeps]()

USER: Final[tuple[AuthorKind, str, str]] = ("user", "user", "User")
PAGE_BYTES: Final = 700_000
CHANGES_AT_ONCE: Final = 200
# Who is further behind loads the history again; that is cheaper than hearing of every change.
LONGEST_REPLAY: Final = 5_000


@handlers.answers(ListChannels)
async def list_channels(deps: ChatDeps, query: ListChannels) -> ChannelList:
    """Return all of them."""
    async with deps.pool.acquire() as conn:
        return ChannelList(items=await store.LIST.all(conn))


@handlers.answers(GetChannelSettings)
async def get_settings(deps: ChatDeps, query: GetChannelSettings) -> ChannelSettingsView:
    """Return the stored settings."""
    async with deps.pool.acquire() as conn:
        return await store.SETTINGS.one(conn)


@handlers.answers(PatchChannelSettings)
async def patch_settings(deps: ChatDeps, command: PatchChannelSettings) -> ChannelSettingsView:
    """Change the given fields; the agent must be one that work can be given to."""
    changes = given_fields(command.body, nullable={"agent_id"})
    async with deps.outbox.transaction() as conn:
        stored = await store.LOCK_SETTINGS.one(conn)
        if command.body.revision not in (None, stored.revision):
            raise RevisionConflictError(extra={"settings": stored.wire()})
        wanted = stored.model_copy(update=changes)
        if changes.get("agent_id") is not None and wanted.agent_id not in {each.id for each in await _workers(conn)}:
            raise InvalidInputError("There is no agent with this id that work can be given to.", field="agentId")
        saved = await store.UPDATE_SETTINGS.one(conn, wanted.auto_reply, wanted.agent_id)
        event = ChannelSettingsChanged(aggregate_id="channels", version=saved.revision, settings=saved)
        await deps.outbox.add(conn, event)
    return saved


@handlers.answers(ReadChannel)
async def read_channel(deps: ChatDeps, query: ReadChannel) -> ChannelHistory:
    """Return a page, oldest first."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        revision = await _revision(conn, query.channel_id)
        arguments = query.channel_id, query.before_seq, query.limit, PAGE_BYTES, query.thread_id
        rows = await store.HISTORY.all(conn, *arguments)
        more = bool(rows) and await store.BEFORE.value(conn, query.channel_id, rows[0].seq, query.thread_id)
    return ChannelHistory(
        items=[row.view for row in rows], previous_seq=rows[0].seq if more else None, revision=revision
    )


@handlers.answers(ReadChannelChanges)
async def read_changes(deps: ChatDeps, query: ReadChannelChanges) -> ChannelChanges:
    """Return what changed, each message once; `reset` where that cannot be known or is too much."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        newest = await _revision(conn, query.channel_id)
        after = newest if query.after is None else query.after
        if after > newest or newest - after > LONGEST_REPLAY:
            return ChannelChanges(items=[], revision=newest, more=False, reset=True)
        rows = await store.CHANGES.all(conn, query.channel_id, after, CHANGES_AT_ONCE, PAGE_BYTES)
    revision = rows[-1].revision if rows else newest
    return ChannelChanges(items=[row.view for row in rows], revision=revision, more=revision < newest, reset=False)


@handlers.answers(PostMessage)
async def post_message(deps: ChatDeps, command: PostMessage) -> ChannelMessage:
    """Store the message, and that a task is to be made of it; who makes it is woken after the commit."""
    body = _storable(command.post.body)
    async with deps.outbox.transaction() as conn:
        await lock_channel(conn, command.channel_id)
        if (stored := await store.MESSAGE.first(conn, command.command_id)) is not None:
            return _repeated(command, stored, body).view
        await _refuse_too_many(conn)
        thread_id = await _thread(conn, command)
        workspace_id = command.post.workspace_id
        if workspace_id is not None:
            await workspace_for(conn, workspace_id)
        mentions = mentioned(body, await _workers(conn))
        row = await add(
            conn,
            deps.outbox,
            message_id=command.command_id,
            channel_id=command.channel_id,
            author=USER,
            body=body,
            thread_id=thread_id,
            mentions=mentions,
            workspace_id=workspace_id,
            run=await _run(conn, mentions),
        )
        assert row is not None, "what tells of no task is always stored"
    deps.channel_posted()
    return row.view


@handlers.answers(EditMessage)
async def edit_message(deps: ChatDeps, command: EditMessage) -> ChannelMessage:
    """Change the text; the text that is stored already is no change."""
    body = _storable(command.body)
    async with deps.outbox.transaction() as conn:
        row = await locked_message(conn, command.channel_id, command.message_id)
        if row.deleted_at is not None:
            raise MessageDeletedError
        if row.author_kind != "user":
            raise NotYourMessageError
        if row.body != body:
            row = await told(conn, deps.outbox, store.EDIT.one(conn, row.channel_id, row.id, body))
    return row.view


@handlers.answers(DeleteMessage)
async def delete_message(deps: ChatDeps, command: DeleteMessage) -> ChannelMessage:
    """Take its text out; again: the same answer."""
    async with deps.outbox.transaction() as conn:
        row = await locked_message(conn, command.channel_id, command.message_id)
        if row.deleted_at is None:
            row = await told(conn, deps.outbox, store.DELETE.one(conn, row.channel_id, row.id))
    return row.view


@handlers.answers(MarkChannelRead)
async def mark_read(deps: ChatDeps, command: MarkChannelRead) -> ChannelView:
    """Move the cursor forward, to the newest message at most."""
    async with deps.pool.transaction() as conn:
        await store.READ.run(conn, command.channel_id, command.seq)
        channel = await store.GET.first(conn, command.channel_id)
    if channel is None:
        raise ChannelNotFoundError
    return channel


async def _revision(conn: Connection, channel_id: str) -> int:
    revision = await store.REVISION.first(conn, channel_id)
    if revision is None:
        raise ChannelNotFoundError
    return revision


async def _workers(conn: Connection) -> list[AgentView]:
    """Return the agents that work can be given to."""
    return [each for each in await agents.LIST.all(conn) if each.takes_work]


def _storable(text: str) -> str:
    return redact(text)[:BODY_CHARACTERS]


def _repeated(command: PostMessage, stored: MessageRow, body: str) -> MessageRow:
    """Return the stored message, if this is the command that made it."""
    is_as_posted = stored.edited_at is None and stored.deleted_at is None
    if (
        stored.author_kind != "user"
        or stored.channel_id != command.channel_id
        or (is_as_posted and stored.body != body)
    ):
        raise KeyUsedError
    return stored


async def _refuse_too_many(conn: Connection) -> None:
    posted = await store.POSTED.one(conn, POSTS_A_MINUTE)
    if posted.posts >= POSTS_A_MINUTE:
        raise TooManyPostsError(retry_after_s=max(1.0, posted.oldest_ends_s))


async def _thread(conn: Connection, command: PostMessage) -> str | None:
    """Return the message at which the thread begins."""
    if command.post.thread_id is None:
        return None
    answered = await store.MESSAGE.first(conn, command.post.thread_id)
    if answered is None or answered.channel_id != command.channel_id:
        raise InvalidInputError("There is no message with this id in this channel.", field="threadId")
    return answered.thread_id or answered.id


async def _run(conn: Connection, mentions: list[str]) -> tuple[RunState, str | None] | None:
    """Return the run that is to begin, and who does it: the agent that was named first, or the one of the settings."""
    if mentions:
        agent_id: str | None = mentions[0]
    else:
        settings = await store.SETTINGS.one(conn)
        if not settings.auto_reply:
            return None
        agent_id = settings.agent_id
    return "waiting", None if agent_id == ORCHESTRATOR else agent_id
