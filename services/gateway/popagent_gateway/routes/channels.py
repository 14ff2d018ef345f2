"""Channels: what was said, what is said as it is said, and what a post starts."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import APIRouter, Header, Path, Query
from starlette.responses import Response

from popagent_gateway.asking import Bus, CommandId, Hub, OpenStreams, PathId
from popagent_gateway.bodies import JsonRoute
from popagent_gateway.paging import ChannelPage
from popagent_gateway.streams.channel import ChannelFeed
from popagent_gateway.streams.sse import EventStream
from popagent_kit.ids import Id
from popagent_proto.chat.channels import (
    CancelMessageRun,
    ChannelHistory,
    ChannelList,
    ChannelMessage,
    ChannelSettingsPatch,
    ChannelSettingsView,
    ChannelView,
    DeleteMessage,
    EditBody,
    EditMessage,
    GetChannelSettings,
    ListChannels,
    MarkChannelRead,
    PatchChannelSettings,
    PostBody,
    PostMessage,
    ReadBody,
    ReadChannel,
)

MessageId: TypeAlias = Annotated[Id, Path(alias="messageId")]
router = APIRouter(prefix="/api/channels", tags=["channels"], route_class=JsonRoute)


@router.get("")
async def list_channels(bus: Bus) -> ChannelList:
    """List channels, with how far they were read."""
    return await bus.ask(ListChannels())


@router.get("/settings")
async def get_settings(bus: Bus) -> ChannelSettingsView:
    """Return what posts start."""
    return await bus.ask(GetChannelSettings())


@router.patch("/settings")
async def patch_settings(bus: Bus, body: ChannelSettingsPatch, command_id: CommandId) -> ChannelSettingsView:
    """Change what posts start; the next post goes by it."""
    return await bus.ask(PatchChannelSettings(command_id=command_id, body=body))


@router.get("/{id}/messages")
async def read_messages(bus: Bus, id: PathId, page: Annotated[ChannelPage, Query()]) -> ChannelHistory:  # noqa: A002
    """Return the newest messages, or those before one, oldest first."""
    return await bus.ask(ReadChannel(channel_id=id, **page.model_dump()))


@router.post("/{id}/messages", status_code=201)
async def post_message(bus: Bus, id: PathId, body: PostBody, command_id: CommandId) -> ChannelMessage:  # noqa: A002
    """Write into a channel; who mentions an agent starts a task, whose output is the reply."""
    return await bus.ask(PostMessage(command_id=command_id, channel_id=id, post=body))


@router.patch("/{id}/messages/{messageId}")
async def edit_message(bus: Bus, id: PathId, message_id: MessageId, body: EditBody) -> ChannelMessage:  # noqa: A002
    """Change the text of a message that a person wrote; what it started goes on."""
    return await bus.ask(EditMessage(channel_id=id, message_id=message_id, body=body.body))


@router.delete("/{id}/messages/{messageId}")
async def delete_message(bus: Bus, id: PathId, message_id: MessageId) -> ChannelMessage:  # noqa: A002
    """Take the text of a message out for good; its place stays."""
    return await bus.ask(DeleteMessage(channel_id=id, message_id=message_id))


@router.post("/{id}/messages/{messageId}/cancel")
async def cancel_run(bus: Bus, id: PathId, message_id: MessageId) -> ChannelMessage:  # noqa: A002
    """Cancel the task that a message started; one that runs is `cancelling` until it has ended."""
    return await bus.ask(CancelMessageRun(channel_id=id, message_id=message_id))


@router.put("/{id}/read")
async def mark_read(bus: Bus, id: PathId, body: ReadBody) -> ChannelView:  # noqa: A002
    """Remember how far the channel was read; it never goes back."""
    return await bus.ask(MarkChannelRead(channel_id=id, seq=body.seq))


@router.get("/{id}/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def follow_channel(
    hub: Hub,
    closing: OpenStreams,
    id: PathId,  # noqa: A002
    last_event_id: Annotated[str | None, Header(max_length=100, description="Where the client stopped.")] = None,
) -> Response:
    """Stream messages that are new or changed; `resync` says that some were missed: read the history again."""
    feed = ChannelFeed(hub, id, last_event_id)
    await feed.open()
    return EventStream(feed, closing)
