"""One turn: start it, join its stream, stop it."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import Response

from popagent_bus import Bus as MessageBus
from popagent_gateway.asking import Bus, CommandId, OpenStreams, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.chat_request import message_of, seen_above
from popagent_gateway.streams.closing import Closing
from popagent_gateway.streams.sse import EventStream
from popagent_gateway.streams.turn import RUNNING, TurnFeed
from popagent_kit.errors import NotFoundError, UnavailableError
from popagent_proto.chat.turns import ChatRequest, SnapshotTurn, StartTurn, StopTurn, TurnSnapshotView, TurnView
from popagent_uistream.encode import HEADERS

router = APIRouter(prefix="/api/chat", tags=["chat"], route_class=JsonRoute)

TURN_HEADER: Final = "x-popagent-turn-id"
STREAM: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "An AI SDK UI message stream.", "content": {"text/event-stream": {}}}
}


@router.post("", response_class=Response, responses=STREAM)
async def chat(bus: Bus, closing: OpenStreams, body: ChatRequest, turn_id: CommandId) -> Response:
    """Start a turn and stream its answer; the same message again streams the same turn."""
    message = message_of(body)
    if closing.is_set:
        raise UnavailableError("The server is restarting.", retry_after_s=1)
    # Before the turn starts, so that its first frame comes by subscription.
    feed = TurnFeed(bus, body.id, turn_id, is_new=True)
    await feed.subscribe()
    try:
        turn = await bus.ask(
            StartTurn(
                turn_id=turn_id,
                session_id=body.id,
                message=message,
                trigger=body.trigger,
                message_id=body.message_id,
                model=body.model,
                workspace_id=body.workspace_id,
                seen=seen_above(body),
            )
        )
    except BaseException:
        await feed.release()
        raise
    if turn.created:
        return _stream(feed, closing, turn.turn_id)
    await feed.release()
    snapshot = await bus.ask(SnapshotTurn(session_id=body.id, turn_id=turn.turn_id))
    return await _resumed(bus, closing, body.id, snapshot)


@router.get("/{id}/stream", response_class=Response, responses={**STREAM, 204: {"description": "Nothing runs."}})
async def join_stream(bus: Bus, closing: OpenStreams, id: PathId) -> Response:  # noqa: A002
    """Stream the running turn from its start; 204 when nothing runs."""
    try:
        snapshot = await bus.ask(SnapshotTurn(session_id=id))
    except NotFoundError:
        return Response(status_code=204)
    return await _resumed(bus, closing, id, snapshot)


@router.post("/{id}/stop")
async def stop_turn(bus: Bus, id: PathId) -> TurnView:  # noqa: A002
    """Ask the running turn to stop; what it wrote so far is kept."""
    return await bus.ask(StopTurn(session_id=id))


async def _resumed(bus: MessageBus, closing: Closing, session_id: str, snapshot: TurnSnapshotView) -> Response:
    if snapshot.state not in RUNNING:
        return Response(snapshot.sse, headers={**HEADERS, TURN_HEADER: snapshot.turn_id})
    feed = TurnFeed(bus, session_id, snapshot.turn_id, prefix=snapshot.sse.encode(), next_chunk=snapshot.next_chunk)
    await feed.subscribe()
    return _stream(feed, closing, snapshot.turn_id)


def _stream(feed: TurnFeed, closing: Closing, turn_id: str) -> Response:
    return EventStream(feed, closing, {**HEADERS, TURN_HEADER: turn_id})
