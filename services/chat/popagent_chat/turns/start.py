"""Begin a turn: store what the person said, where it hangs in the thread, and the turn that will answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from popagent_agent.tokens import estimate_tokens
from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models.handlers import model_choice
from popagent_chat.sessions import handlers as sessions
from popagent_chat.sessions import store as session_store
from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import store as threads
from popagent_chat.threads.store import StoredMessage
from popagent_chat.turns import store
from popagent_chat.turns.store import LeasedTurn, TurnRow
from popagent_db.pool import Connection
from popagent_kit.errors import ConflictError, InvalidInputError
from popagent_kit.ids import new_id
from popagent_proto.chat.turns import MESSAGE_CHARACTERS, StartTurn, TurnStarted, TurnView, UserMessage
from popagent_telemetry import current_trace_id, inject

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
    """Store message, turn and events at once; the same request again finds the stored turn."""
    if command.message is not None and sum(len(part.text) for part in command.message.parts) > MESSAGE_CHARACTERS:
        raise InvalidInputError(f"A message has at most {MESSAGE_CHARACTERS:,} characters.", field="message.parts")
    if command.model is not None:
        async with deps.pool.acquire() as conn:
            choice = await model_choice(conn)
        await deps.models.require_known(command.model, choice, field="model")
    slot = deps.turns.reserve()
    try:
        async with deps.outbox.transaction() as conn:
            session = await _locked_session(conn, command)
            known = await _known_message(conn, command, session)
            repeated = await _repeated(conn, command, known)
            if repeated is not None:
                return repeated.view(created=False)
            turn = await _start(deps, conn, command, session, known, here=slot is not None)
        if slot is None:
            deps.turns.wake()
        else:
            slot.start(turn)
    finally:
        if slot is not None:
            slot.free()
    return TurnView(
        turn_id=turn.id,
        session_id=turn.session_id,
        message_id=turn.assistant_message_id,
        state="queued" if slot is None else "running",
        created=True,
    )


async def _start(
    deps: ChatDeps,
    conn: Connection,
    command: StartTurn,
    session: SessionRow,
    known: StoredMessage | None,
    *,
    here: bool,
) -> LeasedTurn:
    """Store the turn, owned by this process when it runs `here`."""
    if session.running_turn_id is not None:
        raise sessions.SessionBusyError(extra={"turnId": session.running_turn_id})
    if session.archived_at is not None:
        raise SessionArchivedError(extra={"session": session.summary().wire()})
    place = await _place(conn, command, session, known)
    if place.new_message is not None:
        tokens = sum(estimate_tokens(part["text"]) for part in place.new_message["parts"])
        await threads.append(conn, session.id, place.new_message, parent_id=place.parent_id, token_count=tokens)
    else:
        await threads.SET_HEAD.run(conn, session.id, place.user_message_id)
    headers: dict[str, str] = {}
    inject(headers)
    holder = deps.turns.holder
    turn = await store.INSERT.one(
        conn,
        command.turn_id,
        session.id,
        place.user_message_id,
        new_id(),
        command.model,
        headers,
        current_trace_id(),
        holder.owner if here else None,
        holder.boot_id if here else None,
    )
    row = await session_store.set_running(conn, session.id, turn.id, _title(place))
    started = TurnStarted(
        aggregate_id=turn.id, version=0, turn_id=turn.id, session=row.summary(), trace_id=turn.trace_id
    )
    await deps.outbox.add(conn, started)
    return turn


async def _locked_session(conn: Connection, command: StartTurn) -> SessionRow:
    """Return the session under its lock, created when the id is new; its workspace never changes."""
    row = await session_store.LOCK.first(conn, command.session_id)
    if row is None:
        row = await sessions.create_new(conn, command.session_id, None, command.workspace_id)
    if row is None:
        row = await session_store.LOCK.one(conn, command.session_id)
    if command.workspace_id not in (None, row.workspace_id):
        raise InvalidInputError(
            f"This session works in the workspace {row.workspace_id}; start a new session for another one.",
            field="workspaceId",
        )
    return row


async def _known_message(conn: Connection, command: StartTurn, session: SessionRow) -> StoredMessage | None:
    """Return what is stored under the id of the message that is submitted."""
    if command.trigger != "submit-message" or command.message is None or _is_new(session):
        return None
    return await threads.FIND.first(conn, command.session_id, command.message.id)


def _is_new(session: SessionRow) -> bool:
    """Tell whether nothing ever happened here: no turn, no message, no edit."""
    return session.version == 0


async def _repeated(conn: Connection, command: StartTurn, known: StoredMessage | None) -> TurnRow | None:
    """Return the turn that this very request started before."""
    stored = await store.GET.first(conn, command.turn_id)
    if stored is not None:
        if stored.session_id != command.session_id:
            raise ConflictError("This turn id belongs to another session.", field="turnId")
        return stored
    if known is None or command.message is None or not _same(known, command.message):
        return None
    return await store.NEWEST_FOR_MESSAGE.first(conn, command.session_id, known.id)


async def _place(conn: Connection, command: StartTurn, session: SessionRow, known: StoredMessage | None) -> Place:
    if command.trigger == "regenerate-message":
        answered = await _answered(conn, command, session)
        if answered is not None:
            return answered
    if command.message is None:
        raise InvalidInputError("A message is needed.", field="message")
    if command.message_id is not None:
        return await _edited(conn, command.session_id, command.message_id, command.message)
    if known is not None:
        raise InvalidInputError(
            "A message with this id is stored with other content. To edit it, name it in messageId.",
            field="message.id",
        )
    head = None if _is_new(session) else await threads.HEAD.first(conn, command.session_id)
    await _refuse_unseen(conn, command, session, head)
    return Place(command.message.id, _ui(command.message, command.message.id), head)


async def _edited(conn: Connection, session_id: str, edited_id: str, message: UserMessage) -> Place:
    """Return a sibling of the edited message: what is stored never changes."""
    edited = await threads.FIND.first(conn, session_id, edited_id)
    if edited is None or edited.role != "user":
        raise InvalidInputError("This names no stored message of a person.", field="messageId")
    taken = await threads.FIND.first(conn, session_id, message.id)
    fresh_id = message.id if taken is None else new_id()
    return Place(fresh_id, _ui(message, fresh_id), edited.parent_id)


async def _answered(conn: Connection, command: StartTurn, session: SessionRow) -> Place | None:
    """Return the stored message to answer again: of the named answer, else what the client shows last, else the last.

    None when what the client shows last was never stored, so that it is a new message.
    """
    shown = command.message
    named = command.message_id or await threads.HEAD.first(conn, session.id)
    question = await _question(conn, session.id, named)
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
    return stored.role == "user" and stored.parts == [part.wire() for part in message.parts]


def _title(place: Place) -> str:
    if place.new_message is None:
        return ""
    words = " ".join(part["text"] for part in place.new_message["parts"]).split()
    return " ".join(words)[:TITLE_CHARACTERS].rstrip()
