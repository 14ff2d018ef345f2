"""A session as it is shown: one page of its branch, each message with its siblings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from popagent_chat.sessions.store import SessionRow
from popagent_chat.threads import branches
from popagent_chat.threads import store as threads
from popagent_chat.threads.fitting import fitted
from popagent_chat.threads.store import StoredMessage
from popagent_db.pool import Connection
from popagent_kit.clock import wire_time
from popagent_kit.errors import ConflictError, InvalidInputError
from popagent_kit.ids import is_client_id
from popagent_proto.chat.sessions import SessionView, UiMessage

# A reply stays below 1 MB (DESIGN §2), the session's own fields and the siblings included.
PAGE_BYTES: Final = 800_000
PAGE_MESSAGES: Final = 100


class OtherBranchError(ConflictError):
    """This message is on another branch of the chat than the one that is shown."""

    code = "other_branch"


@dataclass(frozen=True)
class PagePlace:
    """Which page: before, after or around a message; at most one of them."""

    before: str | None = None
    after: str | None = None
    around: str | None = None

    def named(self) -> tuple[str, str] | None:
        """Return (field, message id).

        Raises:
            InvalidInputError: More than one is given.
        """
        given = [(name, value) for name, value in vars(self).items() if value is not None]
        if len(given) > 1:
            raise InvalidInputError("Give one of before, after and around.", field=given[1][0])
        return given[0] if given else None


@dataclass(frozen=True)
class _Page:
    messages: list[StoredMessage]
    is_end: bool
    message_bytes: int = PAGE_BYTES


NEWEST: Final = PagePlace()


async def view_of(
    conn: Connection, row: SessionRow, *, place: PagePlace = NEWEST, limit: int = PAGE_MESSAGES
) -> SessionView:
    """Return the session with one page of messages.

    Raises:
        InvalidInputError: `place` names no stored message.
        OtherBranchError: `after` or `around` names one of another branch.
    """
    page = await _page(conn, row.id, place, limit)
    messages = page.messages
    return SessionView(
        **row.summary().model_dump(),
        messages=await shown(conn, row.id, messages, page.message_bytes),
        previous_cursor=messages[0].id if messages and messages[0].parent_id else None,
        next_cursor=None if page.is_end or not messages else messages[-1].id,
    )


async def shown(conn: Connection, thread_id: str, messages: list[StoredMessage], max_bytes: int) -> list[UiMessage]:
    """Return the UI messages with what only a view tells of them: siblings, and when a person wrote."""
    siblings = await branches.siblings_of(conn, thread_id, messages)
    return [ui_of(message, siblings.get(message.id), max_bytes) for message in messages]


def ui_of(message: StoredMessage, siblings: list[str] | None, max_bytes: int) -> UiMessage:
    """Return the UI message with what only a view tells of it, in at most about `max_bytes` of JSON."""
    # An answer says it itself, in the stream as when it is stored.
    told: dict[str, Any] = {"createdAt": wire_time(message.created_at)} if message.role == "user" else {}
    if siblings is not None:
        told["siblings"] = siblings
    ui = fitted(message.ui(), max_bytes)
    return {**ui, "metadata": {**ui.get("metadata", {}), **told}} if told else ui


async def _page(conn: Connection, thread_id: str, place: PagePlace, limit: int) -> _Page:
    named = place.named()
    if named is None:
        head = await threads.HEAD.first(conn, thread_id)
        return _Page(await threads.BRANCH.all(conn, thread_id, head, limit, PAGE_BYTES), is_end=True)
    field, message_id = named
    message = await threads.FIND.first(conn, thread_id, message_id) if is_client_id(message_id) else None
    if message is None:
        raise InvalidInputError("This names no stored message.", field=field)
    if field == "before":
        older = await threads.BRANCH.all(conn, thread_id, message.parent_id, limit, PAGE_BYTES)
        return _Page(older, is_end=False)
    head = await threads.HEAD.first(conn, thread_id)
    if not await branches.IS_ON_BRANCH.value(conn, thread_id, head, message.seq):
        raise OtherBranchError(field=field)
    if field == "after":
        newer = await branches.NEWER.all(conn, thread_id, head, message.seq, limit, PAGE_BYTES, True)
        return _Page([*newer], is_end=not newer or newer[-1].is_last)
    # Half of the bytes for each side, so that a giant on one side hides nothing of the other. It comes whatever its
    # size is when it is the one that was asked for, and then has no more than its side.
    half = PAGE_BYTES // 2
    older = await threads.BRANCH.all(conn, thread_id, message_id, limit, half)
    newer = await branches.NEWER.all(conn, thread_id, head, message.seq, limit // 2, half, False)
    together = [*older[max(0, len(older) + len(newer) - limit) :], *newer]
    return _Page(together, is_end=together[-1].id == head, message_bytes=half)
