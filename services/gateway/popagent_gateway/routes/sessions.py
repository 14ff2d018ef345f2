"""Sessions: list, create, load, save, patch, delete."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from popagent_gateway.asking import Bus, CommandId, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.export.download import Format, download
from popagent_gateway.jobs import ACCEPTED, accepted
from popagent_gateway.paging import MessageSearch, SessionPage
from popagent_proto.chat.sessions import (
    CreateSession,
    CreateSessionBody,
    DeletedView,
    DeleteSession,
    GetSession,
    ListSessions,
    MessageHits,
    PatchSession,
    PatchSessionBody,
    SaveSession,
    SaveSessionBody,
    SearchMessages,
    SessionList,
    SessionView,
    SetHead,
    SetHeadBody,
)

router = APIRouter(prefix="/api/sessions", tags=["sessions"], route_class=JsonRoute)

FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "A file.", "content": {"text/markdown": {}, "application/json": {}}}
}


@router.get("")
async def list_sessions(bus: Bus, query: Annotated[ListSessions, Query()]) -> SessionList:
    """List or search active or archived sessions, newest activity first."""
    return await bus.ask(query)


@router.post("", status_code=201)
async def create_session(bus: Bus, body: CreateSessionBody, command_id: CommandId) -> SessionView:
    """Create a session."""
    return await bus.ask(CreateSession(command_id=command_id, body=body))


@router.get("/{id}")
async def get_session(bus: Bus, id: PathId, page: Annotated[SessionPage, Query()]) -> SessionView:  # noqa: A002
    """Load a session with its newest messages, with those before or after a cursor, or around one message."""
    return await bus.ask(GetSession(session_id=id, **page.model_dump()))


@router.get("/{id}/search")
async def search_messages(bus: Bus, id: PathId, query: Annotated[MessageSearch, Query()]) -> MessageHits:  # noqa: A002
    """Search the shown branch of a session, oldest message first."""
    return await bus.ask(SearchMessages(session_id=id, **query.model_dump()))


@router.get("/{id}/export", response_class=Response, responses=FILE)
async def export_session(
    bus: Bus,
    id: PathId,  # noqa: A002
    form: Annotated[Format, Query(alias="format")] = "markdown",
) -> Response:
    """Download the shown branch of a session, whole, as Markdown or as JSON."""
    return await download(bus, id, form)


@router.put("/{id}")
async def save_session(bus: Bus, id: PathId, body: SaveSessionBody, command_id: CommandId) -> SessionView:  # noqa: A002
    """Rename a session, or shorten it to a stored prefix of its messages."""
    return await bus.ask(SaveSession(command_id=command_id, session_id=id, body=body))


@router.put("/{id}/head")
async def set_head(bus: Bus, id: PathId, body: SetHeadBody, command_id: CommandId) -> SessionView:  # noqa: A002
    """Show the branch through a message, down to its newest end."""
    return await bus.ask(SetHead(command_id=command_id, session_id=id, body=body))


@router.patch("/{id}")
async def patch_session(bus: Bus, id: PathId, body: PatchSessionBody, command_id: CommandId) -> SessionView:  # noqa: A002
    """Rename, archive or restore a session."""
    return await bus.ask(PatchSession(command_id=command_id, session_id=id, body=body))


@router.delete("/{id}", response_model=DeletedView, responses=ACCEPTED)
async def delete_session(bus: Bus, id: PathId) -> DeletedView | Response:  # noqa: A002
    """Delete a session for good; what runs in it is stopped first. Of a long one a job deletes what was said."""
    deleted = await bus.ask(DeleteSession(session_id=id))
    return accepted(deleted.job) if deleted.job is not None else DeletedView(id=deleted.id)
