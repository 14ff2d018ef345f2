"""Sessions: list, create, read, rename, archive, shorten."""

from __future__ import annotations

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.sessions import search, store
from popagent_chat.sessions.store import SessionRow
from popagent_chat.sessions.view import PagePlace, view_of
from popagent_chat.threads import store as threads
from popagent_chat.threads.words import folded
from popagent_chat.workspaces.handlers import workspace_for
from popagent_db.pool import Connection
from popagent_kit import cursors
from popagent_kit.cursors import UnknownCursorError
from popagent_kit.errors import ConflictError, InvalidInputError, KeyUsedError, NotFoundError, RevisionConflictError
from popagent_kit.ids import is_client_id
from popagent_proto.chat.sessions import (
    CreateSession,
    GetSession,
    ListSessions,
    MessageHits,
    MessageRef,
    PatchSession,
    SaveSession,
    SearchMessages,
    SessionChanged,
    SessionList,
    SessionView,
)
from popagent_telemetry import redact

handlers = Handlers[ChatDeps]()


class SessionExistsError(ConflictError):
    """A session with this id exists already."""

    code = "session_exists"


class SessionLeavingError(ConflictError):
    """A session with this id is being deleted. Use another id, or wait until it is gone."""

    code = "session_leaving"


class SessionBusyError(ConflictError):
    """A turn is running in this session. Stop it, or wait for its end."""

    code = "turn_running"


class SessionNotFoundError(NotFoundError):
    """There is no session with this id."""


@handlers.answers(ListSessions)
async def list_sessions(deps: ChatDeps, query: ListSessions) -> SessionList:
    """Return one page, newest activity first."""
    updated_at, session_id = (None, None) if query.cursor is None else cursors.decode(query.cursor)
    which = (query.archived, query.workspace_id, updated_at, session_id, query.limit + 1)
    async with deps.pool.acquire() as conn:
        if query.q is None:
            found = [row.item() for row in await store.LIST.all(conn, *which)]
        else:
            found = await search.sessions(conn, query.q, which)
    page = found[: query.limit]
    more = cursors.encode(page[-1].updated_at, page[-1].id) if len(found) > query.limit else None
    return SessionList(items=page, next_cursor=more)


@handlers.answers(GetSession)
async def get_session(deps: ChatDeps, query: GetSession) -> SessionView:
    """Return the session with one page of its branch."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        row = await store.GET.first(conn, query.session_id)
        if row is None:
            raise SessionNotFoundError
        place = PagePlace(before=query.before, after=query.after, around=query.around)
        return await view_of(conn, row, place=place, limit=query.limit)


@handlers.answers(SearchMessages)
async def search_messages(deps: ChatDeps, query: SearchMessages) -> MessageHits:
    """Return one page of what the shown branch holds."""
    async with deps.pool.acquire() as conn, conn.transaction(isolation="repeatable_read", readonly=True):
        if await store.GET.first(conn, query.session_id) is None:
            raise SessionNotFoundError
        after_seq = 0
        if query.cursor is not None:
            last = (
                await threads.FIND.first(conn, query.session_id, query.cursor) if is_client_id(query.cursor) else None
            )
            if last is None:
                raise UnknownCursorError("This cursor is not one that a search answered.")
            after_seq = last.seq
        found = await search.messages(conn, query.session_id, query.q, after_seq, query.limit + 1)
    page = found[: query.limit]
    return MessageHits(items=page, next_cursor=page[-1].message_id if len(found) > query.limit else None)


@handlers.answers(CreateSession)
async def create_session(deps: ChatDeps, command: CreateSession) -> SessionView:
    """Store an empty session; without an id in the body the command's id is the session's, so a replay finds it."""
    session_id = command.body.id or command.command_id
    async with deps.outbox.transaction() as conn:
        row = await create(conn, session_id, command.body.title, command.body.workspace_id)
        if row is not None:
            await deps.outbox.add(conn, SessionChanged(aggregate_id=row.id, version=row.version, session=row.summary()))
            return await view_of(conn, row)
        found = await store.GET.first(conn, session_id)
        if found is None:
            raise SessionLeavingError
        if command.body.id is None and await _was_made_by(conn, found, command):
            return await view_of(conn, found)
        stored = await view_of(conn, found)
    if command.body.id is None:
        raise KeyUsedError
    raise SessionExistsError(extra={"session": stored.wire()})


async def _was_made_by(conn: Connection, stored: SessionRow, command: CreateSession) -> bool:
    """Tell whether this command made the session; once somebody changed it, nobody can tell."""
    wanted = await workspace_for(conn, command.body.workspace_id)
    title = stored.title if stored.title_locked else None
    return stored.revision > 0 or (stored.workspace_id, title) == (wanted.id, _without_credentials(command.body.title))


@handlers.answers(PatchSession)
async def patch_session(deps: ChatDeps, command: PatchSession) -> SessionView:
    """Rename, archive or restore."""
    body = command.body
    async with deps.outbox.transaction() as conn:
        await lock_for_edit(conn, command.session_id, body.revision, needs_rest=body.archived is True)
        return await _edited(deps, conn, command.session_id, body.title, body.archived)


@handlers.answers(SaveSession)
async def save_session(deps: ChatDeps, command: SaveSession) -> SessionView:
    """Rename, or move the head of the thread back to the last message that the client keeps."""
    body = command.body
    async with deps.outbox.transaction() as conn:
        await lock_for_edit(conn, command.session_id, body.revision, needs_rest=body.messages is not None)
        if body.messages is not None:
            await _shorten(conn, command.session_id, body.messages)
        return await _edited(deps, conn, command.session_id, body.title, None, shortened=body.messages is not None)


async def create(conn: Connection, session_id: str, title: str | None, workspace_id: str | None) -> SessionRow | None:
    """Create thread and session; None when the id is taken. The row is locked by its insert."""
    if await store.GET.first(conn, session_id) is not None:
        return None
    workspace = await workspace_for(conn, workspace_id)
    shown = _without_credentials(title)
    return await store.INSERT.first(
        conn,
        session_id,
        "session",
        threads.RESOURCE,
        shown or "",
        title is not None,
        workspace.id,
        folded(shown or ""),
    )


async def lock_for_edit(conn: Connection, session_id: str, revision: int, *, needs_rest: bool) -> SessionRow:
    """Lock the session for a change by a person.

    Raises:
        SessionNotFoundError: No such session.
        RevisionConflictError: The person saw an older one; the stored one is beside the error.
        SessionBusyError: `needs_rest` and a turn runs.
    """
    row = await store.LOCK.first(conn, session_id)
    if row is None:
        raise SessionNotFoundError
    if row.revision != revision:
        raise RevisionConflictError(extra={"session": (await view_of(conn, row)).wire()})
    if needs_rest and row.running_turn_id is not None:
        raise SessionBusyError(extra={"session": row.summary().wire()})
    return row


async def _edited(
    deps: ChatDeps,
    conn: Connection,
    session_id: str,
    title: str | None,
    archived: bool | None,
    *,
    shortened: bool = False,
) -> SessionView:
    title = _without_credentials(title)
    row = await store.EDIT.one(conn, session_id, title, archived, None if title is None else folded(title), shortened)
    await deps.outbox.add(conn, SessionChanged(aggregate_id=row.id, version=row.version, session=row.summary()))
    return await view_of(conn, row)


async def _shorten(conn: Connection, session_id: str, kept: list[MessageRef]) -> None:
    head = await threads.HEAD.first(conn, session_id)
    branch = await threads.BRANCH_IDS.all(conn, session_id, head) if head else []
    ids = [message.id for message in kept]
    if ids != branch[: len(ids)]:
        raise InvalidInputError("These messages are not a prefix of the stored ones.", field="messages")
    await threads.SET_HEAD.run(conn, session_id, ids[-1] if ids else None)


def _without_credentials(title: str | None) -> str | None:
    return None if title is None else redact(title)
