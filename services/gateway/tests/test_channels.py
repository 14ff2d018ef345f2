from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from popagent_gateway.streams import hub_feed
from popagent_kit.clock import now
from popagent_kit.errors import AppError, UnavailableError
from popagent_proto.chat.channels import (
    CancelMessageRun,
    ChannelChanges,
    ChannelHistory,
    ChannelList,
    ChannelMessage,
    ChannelMessageChanged,
    ChannelNotFoundError,
    ChannelSettingsPatch,
    ChannelSettingsView,
    ChannelView,
    DeleteMessage,
    EditMessage,
    GetChannelSettings,
    ListChannels,
    MarkChannelRead,
    PatchChannelSettings,
    PostBody,
    PostMessage,
    ReadChannel,
    ReadChannelChanges,
    TooManyPostsError,
)

from .conftest import Owner, Served, SseEvent, events_of

CHANNEL = ChannelView(
    id="general", title="#general", last_seq=2, last_read_seq=1, unread=1, revision=5, created_at=now()
)
SETTINGS = ChannelSettingsView(auto_reply=False, agent_id=None, revision=0, updated_at=now())


def message(revision: int = 5, message_id: str = "m1") -> ChannelMessage:
    return ChannelMessage(
        id=message_id,
        channel_id="general",
        seq=revision,
        revision=revision,
        thread_id=None,
        author_kind="user",
        author_id="user",
        author_name="User",
        body="Hello\nthere.",
        mentions=[],
        workspace_id=None,
        run=None,
        task_id=None,
        edited_at=None,
        deleted_at=None,
        created_at=now(),
    )


async def test_every_route_asks_the_owner_what_was_asked_of_it(http: httpx2.AsyncClient, chat: Owner) -> None:
    history = ChannelHistory(items=[message()], previous_seq=None, revision=5)
    for request, reply in {
        ListChannels: ChannelList(items=[CHANNEL]),
        GetChannelSettings: SETTINGS,
        PatchChannelSettings: SETTINGS,
        ReadChannel: history,
        PostMessage: message(),
        EditMessage: message(),
        DeleteMessage: message(),
        CancelMessageRun: message(),
        MarkChannelRead: CHANNEL,
    }.items():
        chat.answer(request, reply)
    key = {"idempotency-key": "m1"}

    answers = [
        await http.get("/api/channels"),
        await http.get("/api/channels/settings"),
        await http.patch("/api/channels/settings", json={"autoReply": True}, headers=key),
        await http.get("/api/channels/general/messages?beforeSeq=9&threadId=t1&limit=3"),
        await http.post("/api/channels/general/messages", json={"body": "Hello", "threadId": "t1"}, headers=key),
        await http.patch("/api/channels/general/messages/m1", json={"body": "Bye"}),
        await http.delete("/api/channels/general/messages/m1"),
        await http.post("/api/channels/general/messages/m1/cancel"),
        await http.put("/api/channels/general/read", json={"seq": 2}),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 200, 201, 200, 200, 200, 200]
    assert answers[3].json() == history.wire()
    assert chat.asked == [
        ListChannels(),
        GetChannelSettings(),
        PatchChannelSettings(command_id="m1", body=ChannelSettingsPatch(auto_reply=True)),
        ReadChannel(channel_id="general", before_seq=9, thread_id="t1", limit=3),
        PostMessage(command_id="m1", channel_id="general", post=PostBody(body="Hello", thread_id="t1")),
        EditMessage(channel_id="general", message_id="m1", body="Bye"),
        DeleteMessage(channel_id="general", message_id="m1"),
        CancelMessageRun(channel_id="general", message_id="m1"),
        MarkChannelRead(channel_id="general", seq=2),
    ]


async def test_too_many_posts_are_told_when_to_come_back(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(PostMessage, TooManyPostsError(retry_after_s=12.2))

    answer = await http.post("/api/channels/general/messages", json={"body": "Hello"})

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "13")
    assert answer.json()["code"] == "too_many_posts"


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "general/messages", {"body": " \n"}, "body"),
        ("POST", "general/messages", {"body": "x" * 40_001}, "body"),
        ("POST", "general/messages", {"body": "x", "authorKind": "system"}, "authorKind"),
        ("POST", "general/messages", {"body": "x", "authorName": "popagent"}, "authorName"),
        ("POST", "general/messages", {"body": "x", "taskId": "t"}, "taskId"),
        ("GET", "general/messages?limit=201", None, "limit"),
        ("GET", "general/messages?beforeSeq=x", None, "beforeSeq"),
        ("PUT", "general/read", {"seq": -1}, "seq"),
        ("PATCH", "settings", {"autoReply": "yes"}, "autoReply"),
    ],
)
async def test_what_cannot_be_meant_is_refused_with_its_field(
    http: httpx2.AsyncClient, chat: Owner, method: str, path: str, body: object, field: str
) -> None:
    answer = await http.request(method, f"/api/channels/{path}", json=body)

    assert (answer.status_code, answer.json()["field"], chat.asked) == (422, field, [])


class Talk:
    """A channel as its owner has it."""

    def __init__(self, chat: Owner) -> None:
        self.messages: list[ChannelMessage] = []
        self.page = 200
        self.refuses: AppError | None = None
        self.chat = chat
        chat.answer(ReadChannelChanges, self.changes)

    def changes(self, query: ReadChannelChanges) -> ChannelChanges | AppError:
        if self.refuses is not None:
            return self.refuses
        newest = self.messages[-1].revision if self.messages else 0
        after = newest if query.after is None else query.after
        if after > newest:
            return ChannelChanges(items=[], revision=newest, more=False, reset=True)
        items = [each for each in self.messages if each.revision > after][: self.page]
        revision = items[-1].revision if items else newest
        return ChannelChanges(items=items, revision=revision, more=revision < newest, reset=False)

    async def says(self, revision: int, *, tells: bool = True) -> None:
        said = message(revision, f"m{revision}")
        self.messages.append(said)
        if tells:
            event = ChannelMessageChanged(
                aggregate_id=said.id,
                version=revision,
                channel_id="general",
                message_id=said.id,
                seq=revision,
                thread_id=None,
                author_kind="user",
                run_state=None,
                task_id=None,
                deleted=False,
                excerpt="",
            )
            await self.chat.bus.publish(event.to_subject(), event.encode(), event.event_id)


@asynccontextmanager
async def following(served: Served, last: str | None = None) -> AsyncIterator[AsyncIterator[SseEvent]]:
    headers = {} if last is None else {"last-event-id": last}
    async with (
        asyncio.timeout(15),
        served.http.stream("GET", "/api/channels/general/events", headers=headers) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        yield events_of(answer)


async def test_what_is_said_arrives_and_who_comes_back_misses_nothing(served: Served, chat: Owner) -> None:
    talk = Talk(chat)
    await talk.says(1)
    async with following(served) as stream:
        ready = await anext(stream)
        await talk.says(2)
        heard = await anext(stream)
    for revision in range(3, 30):
        await talk.says(revision)
    talk.page = 4

    async with following(served, heard.id) as stream:
        again = await anext(stream)
        missed = [await anext(stream) for _ in range(27)]

    assert (ready.name, ready.id, json.loads(ready.data)) == ("ready", "1", {"channelId": "general", "revision": 1})
    assert (heard.name, heard.id, json.loads(heard.data)["id"]) == ("message", "2", "m2")
    assert (again.name, again.id) == ("ready", "2")
    assert [event.id for event in missed] == [str(revision) for revision in range(3, 30)]


@pytest.mark.parametrize("place", ["7", "nonsense", "", "-1", "9" * 19])
async def test_a_place_that_the_channel_does_not_have_gives_resync(served: Served, chat: Owner, place: str) -> None:
    talk = Talk(chat)
    await talk.says(1)

    async with following(served, place) as stream:
        first = await anext(stream)
        await talk.says(2)
        second = await anext(stream)

    assert (first.name, first.id, second.id) == ("resync", "1", "2")


async def test_a_channel_that_went_back_while_it_was_followed_gives_resync(served: Served, chat: Owner) -> None:
    talk = Talk(chat)
    await talk.says(5)
    async with following(served) as stream:
        await anext(stream)
        talk.messages.clear()
        await talk.says(2)
        event = await anext(stream)

    assert (event.name, event.id) == ("resync", "2")


async def test_a_lost_wake_up_and_an_owner_that_is_away_cost_time_alone(
    served: Served, chat: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_feed, "TICK_S", 0.2)
    monkeypatch.setattr(hub_feed, "AGAIN_S", 0.1)
    talk = Talk(chat)
    async with following(served) as stream:
        await anext(stream)
        talk.refuses = UnavailableError()
        await talk.says(1, tells=False)
        await asyncio.sleep(0.5)
        talk.refuses = None
        heard = await anext(stream)

    assert heard.id == "1"


async def test_an_unknown_channel_is_not_followed(served: Served, chat: Owner) -> None:
    chat.answer(ReadChannelChanges, ChannelNotFoundError())

    answer = await served.http.get("/api/channels/none/events")

    assert answer.status_code == 404
    assert not served.gateway.hub._listeners
