"""Begin a turn: store what the person said, where it hangs in the thread, and the turn that will answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from popagent_agent.tokens import estimate_tokens
from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models.choice import model_choice
from popagent_chat.sessions import handlers as sessions
from popagent_chat.sessions import store as session_rows
from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.threads.store import StoredMessage
from popagent_chat.threads.words import folded
from popagent_chat.turns import store
from popagent_chat.turns.store import LeasedTurn, Seen, TurnRow
from popagent_chat.workspaces.handlers import workspace_for
from popagent_db.pool import Connection
from popagent_kit.errors import ConflictError, InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto.chat.turns import MESSAGE_CHARACTERS, StartTurn, TurnStarted, TurnView, UserMessage
from popagent_rows import outbox
from popagent_rows.leased import Holder
from popagent_telemetry import current_trace_id, inject, redact, redact_value

handlers = Handlers[ChatDeps]()

TITLE_CHARACTERS: Final = 60


class BranchChangedError(ConflictError):
    """This chat goes on differently from what was shown when this was written. Load it again, then send."""

    code = "branch_changed"


class SessionArchivedError(ConflictError):
    """This session is archived. Restore it to go on."""

    code = "session_archived"


@dataclass(frozen=True)
class Place:
    """Where the new turn hangs: below a stored user message, or below a new one with this parent."""

    user_message_id: str
    new_message: dict[str, Any] | None
    parent_id: str | None


@handlers.answers(StartTurn)
async def start_turn(deps: ChatDeps, command: StartTurn) -> TurnView:
    """Store message, turn and events at once; the same request again finds the stored turn.

    This is where the words of a person come in: credentials in them are gone from here on.
    """
    if command.message is not None and sum(len(part.text) for part in command.message.parts) > MESSAGE_CHARACTERS:
        raise InvalidInputError(f"A message has at most {MESSAGE_CHARACTERS:,} characters.", field="message.parts")
    command = _without_credentials(command)
    if command.model is not None:
        async with deps.pool.acquire() as conn:
            choice = await model_choice(conn)
        await deps.models.require_known(command.model, choice, field="model")
    slot = deps.turns.reserve()
    holder = None if slot is None else deps.turns.holder
    try:
        async with deps.pool.acquire() as conn:
            started = await _started(conn, command, holder)
        if isinstance(started, TurnRow):
            return started.view(created=False)
        deps.outbox.wake()
        if slot is None:
            deps.turns.wake()
        else:
            slot.start(started)
    finally:
        if slot is not None:
            slot.free()
    return TurnView(
        turn_id=started.id,
        session_id=started.session_id,
        message_id=started.assistant_message_id,
        state="queued" if slot is None else "running",
        created=True,
    )


async def _started(conn: Connection, command: StartTurn, holder: Holder | None) -> LeasedTurn | TurnRow:
    """Store the turn, owned by `holder` if there is one, or return the one that this very request started before.

    Reading and writing are one statement each. Whoever changed the session in between has come further, so that this
    ends.
    """
    submitted = command.message if command.trigger == "submit-message" else None
    message_id = None if submitted is None else submitted.id
    while True:
        seen = await store.SEEN.one(conn, command.session_id, command.turn_id, message_id, command.workspace_id)
        session = seen.session or await _new_session(conn, command, seen)
        if command.workspace_id not in (None, session.workspace_id):
            raise InvalidInputError(
                f"This session works in the workspace {session.workspace_id}; start a new session for another one.",
                field="workspaceId",
            )
        repeated = await _repeated(conn, command, seen)
        if repeated is not None:
            return repeated
        if session.running_turn_id is not None:
            raise sessions.SessionBusyError(extra={"turnId": session.running_turn_id})
        if session.archived_at is not None:
            raise SessionArchivedError(extra={"session": session.summary().wire()})
        try:
            turn = await _stored(conn, command, session, seen, holder)
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name != store.KEY:
                raise
            continue  # another session took this id in between; seen now, it is refused
        except asyncpg.ForeignKeyViolationError as error:
            if error.constraint_name != store.IN_WORKSPACE:
                raise
            continue  # the workspace was deleted in between; missed now, it is refused
        if turn is not None:
            return turn
        if seen.session is None and await session_rows.IS_LEAVING.value(conn, command.session_id):
            raise sessions.SessionLeavingError


async def _new_session(conn: Connection, command: StartTurn, seen: Seen) -> SessionRow:
    """Return the session that will be created with its first turn."""
    return SessionRow(
        id=command.session_id,
        title="",
        title_locked=False,
        workspace_id=seen.workspace_id or (await workspace_for(conn, command.workspace_id)).id,
        archived_at=None,
        revision=0,
        version=0,
        running_turn_id=None,
        created_at=seen.now,
        updated_at=seen.now,
    )


async def _stored(
    conn: Connection, command: StartTurn, session: SessionRow, seen: Seen, holder: Holder | None
) -> LeasedTurn | None:
    """Store the turn, and the event with the session as it is then; None when the session has changed since `seen`."""
    place = await _place(conn, command, session, seen)
    message = place.new_message or {"id": place.user_message_id, "role": "user", "parts": None}
    tokens = sum(estimate_tokens(part["text"]) for part in message["parts"] or ())
    # Activity renames only a session that nobody named.
    title = session.title if session.title_locked or session.title else _title(place)
    running = {
        "running_turn_id": command.turn_id,
        "last_turn_state": None,
        "title": title,
        "updated_at": seen.now,
    }
    headers: dict[str, str] = {}
    inject(headers)
    started = TurnStarted(
        aggregate_id=command.turn_id,
        version=0,
        turn_id=command.turn_id,
        session=session.model_copy(update=running).summary(),
        trace_id=current_trace_id(),
    )
    return await store.START.first(
        conn,
        session.id,
        None if seen.session is None else session.version,
        title,
        folded(title),
        session.workspace_id,
        seen.now,
        command.turn_id,
        *threads.columns_of(message, parent_id=place.parent_id, token_count=tokens),
        *outbox.row_of(started),
        new_id(),
        command.model,
        headers,
        started.trace_id,
        None if holder is None else holder.owner,
        None if holder is None else holder.boot_id,
    )


async def _repeated(conn: Connection, command: StartTurn, seen: Seen) -> TurnRow | None:
    """Return the turn that this very request started before."""
    if seen.turn is not None:
        if seen.turn.session_id != command.session_id:
            raise ConflictError("This turn id belongs to another session.", field="turnId")
        if not await _asked_for(conn, command, seen.turn):
            raise ConflictError(
                "This turn id, the Idempotency-Key, was used for another message. Send this one with a new key.",
                field="turnId",
            )
        return seen.turn
    if seen.message is None or command.message is None or not _same(seen.message, command.message):
        return None
    return await store.NEWEST_FOR_MESSAGE.first(conn, command.session_id, seen.message.id)


async def _asked_for(conn: Connection, command: StartTurn, turn: TurnRow) -> bool:
    """Tell whether this request is the one that started the turn; the thread may have gone on since."""
    answers = await threads.FIND.first(conn, turn.session_id, turn.user_message_id)
    shown = command.message
    if answers is None or (shown is not None and command.trigger == "submit-message" and not _same(answers, shown)):
        return False
    named = None if command.message_id is None else await threads.FIND.first(conn, turn.session_id, command.message_id)
    if command.trigger == "submit-message":
        # Of an edit the id may have been taken, by what it edits above all.
        edited = named is not None and named.parent_id == answers.parent_id
        return shown is not None and (shown.id == answers.id or edited)
    if command.message_id is not None:
        # No request can name the answer that it is about to start.
        return named is not None and named.id != turn.assistant_message_id and answers.id in (named.id, named.parent_id)
    return shown is None or shown.id == answers.id or _same(answers, shown)


async def _place(conn: Connection, command: StartTurn, session: SessionRow, seen: Seen) -> Place:
    if command.trigger == "regenerate-message":
        answered = await _answered(conn, command, session, seen.head_id)
        if answered is not None:
            return answered
    if command.message is None:
        raise InvalidInputError("A message is needed.", field="message")
    if command.message_id is not None:
        return await _edited(conn, command.session_id, command.message_id, command.message)
    if seen.message is not None:
        raise InvalidInputError(
            "A message with this id is stored with other content. To edit it, name it in messageId.",
            field="message.id",
        )
    await _refuse_unseen(conn, command, session, seen.head_id)
    return Place(command.message.id, _ui(command.message, command.message.id), seen.head_id)


async def _edited(conn: Connection, session_id: str, edited_id: str, message: UserMessage) -> Place:
    """Return a sibling of the edited message: what is stored never changes."""
    edited = await threads.FIND.first(conn, session_id, edited_id)
    if edited is None or edited.role != "user":
        raise InvalidInputError("This names no stored message of a person.", field="messageId")
    taken = await threads.FIND.first(conn, session_id, message.id)
    fresh_id = message.id if taken is None else new_id()
    return Place(fresh_id, _ui(message, fresh_id), edited.parent_id)


async def _answered(conn: Connection, command: StartTurn, session: SessionRow, head: str | None) -> Place | None:
    """Return the stored message to answer again: of the named answer, else what the client shows last, else the last.

    None when what the client shows last was never stored, so that it is a new message.
    """
    shown = command.message
    question = await _question(conn, session.id, command.message_id or head)
    if command.message_id is None and shown is not None and (question is None or question.id != shown.id):
        stored = await threads.FIND.first(conn, session.id, shown.id)
        if stored is None:
            return None
        if _same(stored, shown):
            question = stored
        elif question is None or not _same(question, shown):
            # Otherwise it is an edit of that one, which the official client knows by the id of what it edited.
            raise BranchChangedError(extra={"session": session.summary().wire()})
    if question is None:
        raise InvalidInputError("There is no stored answer to write again.", field="messageId")
    return Place(question.id, None, question.parent_id)


async def _question(conn: Connection, session_id: str, message_id: str | None) -> StoredMessage | None:
    message = await threads.FIND.first(conn, session_id, message_id) if message_id else None
    if message is not None and message.role == "assistant" and message.parent_id is not None:
        message = await threads.FIND.first(conn, session_id, message.parent_id)
    return message if message is not None and message.role == "user" else None


async def _refuse_unseen(conn: Connection, command: StartTurn, session: SessionRow, head: str | None) -> None:
    """Raise BranchChangedError unless the message follows what the client shows; an answer to that may be unseen."""
    seen = command.seen
    if seen is None or head in seen[:1] or (head is None and not seen):
        return
    known = await threads.FIRST_KNOWN.first(conn, command.session_id, seen) if seen else None
    if known == head:
        return
    last = await threads.FIND.first(conn, command.session_id, head) if head else None
    if known is None or last is None or last.role != "assistant" or last.parent_id != known:
        raise BranchChangedError(extra={"session": session.summary().wire()})


def _ui(message: UserMessage, message_id: str) -> dict[str, Any]:
    return {"id": message_id, "role": "user", "parts": [part.wire() for part in message.parts]}


def _same(stored: StoredMessage, message: UserMessage) -> bool:
    """Compare what both are without the credentials that are known by now."""
    said = [part.wire() for part in message.parts]
    return stored.role == "user" and (stored.parts == said or redact_value(stored.parts) == redact_value(said))


def _without_credentials(command: StartTurn) -> StartTurn:
    if command.message is None:
        return command
    parts = [part.model_copy(update={"text": redact(part.text)}) for part in command.message.parts]
    return command.model_copy(update={"message": command.message.model_copy(update={"parts": parts})})


def _title(place: Place) -> str:
    if place.new_message is None:
        return ""
    title = " ".join(" ".join(part["text"] for part in place.new_message["parts"]).split())
    return title if len(title) <= TITLE_CHARACTERS else f"{title[: TITLE_CHARACTERS - 1].rstrip()}…"
