"""What happens, as it happens: one stream a page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from popagent_gateway.asking import Hub, OpenStreams
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.streams.events import EventFeed
from popagent_gateway.streams.sse import EventStream
from popagent_gateway.streams.topics import parse_topics

router = APIRouter(prefix="/api/events", tags=["events"], route_class=JsonRoute)


@router.get("", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def follow_events(
    hub: Hub,
    closing: OpenStreams,
    topics: Annotated[str, Query(max_length=200, description="Names separated by commas.")],
    last_event_id: Annotated[str | None, Header(max_length=100, description="Where the client stopped.")] = None,
) -> Response:
    """Stream events of the topics; `resync` says that some were missed and what they touch must be loaded again."""
    feed = EventFeed(hub, parse_topics(topics), last_event_id)
    await feed.open()
    return EventStream(feed, closing)
