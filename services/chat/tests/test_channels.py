"""Channels over the real bus: what is posted, what changed since, and who may write what."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from popagent_db.pool import Pool
from popagent_kit.errors import (
    AppError,
    ConflictError,
    InvalidInputError,
    KeyUsedError,
    NotFoundError,
    RevisionConflictError,
)
from popagent_kit.ids import new_id
from popagent_proto.chat.channels import (
    GENERAL,
    POSTS_A_MINUTE,
    ChannelMessage,
    ChannelSettingsPatch,
    DeleteMessage,
    EditMessage,
    GetChannelSettings,
    ListChannels,
    MarkChannelRead,
    MessageDeletedError,
    NotYourMessageError,
    PatchChannelSettings,
    PostBody,
    PostMessage,
    ReadChannel,
    ReadChannelChanges,
    TooManyPostsError,
)
from popagent_proto.chat.workspaces import DeleteWorkspace, RegisterWorkspace, RegisterWorkspaceBody
from services.chat.tests.running import Chat, Door


@pytest.fixture(autouse=True)
async def _no_posts_of_others(pool: Pool) -> None:
    await pool.execute("truncate channel_messages, channel_cursors")
    await pool.execute("update channels set last_seq = 0, revision = 0")
    await pool.execute("update channel_settings set auto_reply = false, agent_id = null, revision = 0")


async def post(door: Door, body: str, message_id: str | None = None, **fields: str) -> ChannelMessage:
    command = PostMessage(command_id=message_id or new_id(), channel_id=GENERAL, post=PostBody(body=body, **fields))
    stored: ChannelMessage = await door.ask(command)
    return stored


async def test_general_is_there_from_the_start_and_starts_nothing_by_itself(chat: Chat, door: Door) -> None:
    [general] = (await door.ask(ListChannels())).items
    settings = await door.ask(GetChannelSettings())

    assert (general.id, general.title, general.last_seq, general.unread) == ("general", "#general", 0, 0)
    assert (settings.auto_reply, settings.agent_id) == (False, None)


async def test_a_post_sent_twice_is_one_and_its_id_means_nothing_else(chat: Chat, door: Door) -> None:
    message_id = new_id()

    both = await asyncio.gather(post(door, "Hello.", message_id), post(door, "Hello.", message_id))
    with pytest.raises(KeyUsedError):
        await post(door, "Goodbye.", message_id)

    history = await door.ask(ReadChannel(channel_id=GENERAL))
    assert both[0] == both[1] == history.items[0]
    assert len(history.items) == 1
    assert (both[0].seq, both[0].author_kind, both[0].author_id, both[0].run) == (1, "user", "user", None)


async def test_history_is_read_in_pages_backwards_and_a_thread_by_itself(chat: Chat, door: Door) -> None:
    first = await post(door, "one")
    answer = await post(door, "to one", thread_id=first.id)
    deeper = await post(door, "to the answer", thread_id=answer.id)
    last = await post(door, "two")

    newest = await door.ask(ReadChannel(channel_id=GENERAL, limit=2))
    older = await door.ask(ReadChannel(channel_id=GENERAL, limit=2, before_seq=newest.previous_seq))
    thread = await door.ask(ReadChannel(channel_id=GENERAL, thread_id=first.id))

    assert [each.id for each in older.items + newest.items] == [first.id, answer.id, deeper.id, last.id]
    assert older.previous_seq is None
    assert [each.id for each in thread.items] == [first.id, answer.id, deeper.id]
    assert {answer.thread_id, deeper.thread_id} == {first.id}


async def test_a_page_of_long_messages_fits_a_reply(chat: Chat, door: Door) -> None:
    for _ in range(12):
        await post(door, "ä" * 40_000)

    page = await door.ask(ReadChannel(channel_id=GENERAL, limit=200))
    rest = await door.ask(ReadChannel(channel_id=GENERAL, limit=200, before_seq=page.previous_seq))

    assert len(page.encode()) < 1_000_000
    assert len(page.items) + len(rest.items) == 12


async def test_who_follows_misses_nothing_while_many_write(chat: Chat, door: Door) -> None:
    seen: list[ChannelMessage] = []
    place = (await door.ask(ReadChannelChanges(channel_id=GENERAL))).revision

    async def follow() -> None:
        nonlocal place
        while len(seen) < 50:
            changes = await door.ask(ReadChannelChanges(channel_id=GENERAL, after=place))
            seen.extend(changes.items)
            place = changes.revision

    async with asyncio.timeout(20):
        await asyncio.gather(follow(), *(post(door, f"{number}") for number in range(50)))

    assert [each.seq for each in seen] == list(range(1, 51))
    assert len({each.id for each in seen}) == 50


async def test_what_changed_comes_once_as_it_is_now(chat: Chat, door: Door) -> None:
    message = await post(door, "one")
    other = await post(door, "two")
    await door.ask(EditMessage(channel_id=GENERAL, message_id=message.id, body="uno"))
    edited = await door.ask(EditMessage(channel_id=GENERAL, message_id=message.id, body="uno"))

    changes = await door.ask(ReadChannelChanges(channel_id=GENERAL, after=0))
    deleted = await door.ask(DeleteMessage(channel_id=GENERAL, message_id=message.id))
    later = await door.ask(ReadChannelChanges(channel_id=GENERAL, after=changes.revision))

    assert [(each.id, each.body) for each in changes.items] == [(other.id, "two"), (message.id, "uno")]
    assert (edited.seq, edited.edited_at is not None) == (1, True)
    assert later.items == [deleted]
    assert (deleted.body, deleted.deleted_at is not None) == ("", True)
    assert await door.ask(DeleteMessage(channel_id=GENERAL, message_id=message.id)) == deleted
    with pytest.raises(MessageDeletedError):
        await door.ask(EditMessage(channel_id=GENERAL, message_id=message.id, body="again"))


async def test_a_place_that_is_not_of_this_channel_says_so(chat: Chat, door: Door) -> None:
    await post(door, "one")

    changes = await door.ask(ReadChannelChanges(channel_id=GENERAL, after=7))

    assert (changes.reset, changes.items, changes.revision) == (True, [], 1)


async def test_the_61st_post_of_a_minute_waits(chat: Chat, door: Door, pool: Pool) -> None:
    for number in range(POSTS_A_MINUTE):
        await post(door, f"{number}")

    with pytest.raises(TooManyPostsError) as refused:
        await post(door, "one too many")
    await pool.execute("update channel_messages set created_at = created_at - interval '1 minute' where seq = 1")

    assert 1 <= (refused.value.retry_after_s or 0) <= 60
    assert (await post(door, "now")).seq == POSTS_A_MINUTE + 1


async def test_credentials_in_a_post_are_not_stored(chat: Chat, door: Door, pool: Pool) -> None:
    secret = "ghp_" + "a1B2" * 9

    message = await post(door, f"The token is {secret}, use it.")

    assert secret not in message.body
    assert secret not in str(await pool.fetch("select payload from outbox"))
    assert await pool.fetchval("select count(*) from channel_messages where body like '%' || $1 || '%'", secret) == 0


async def test_what_is_unread_is_what_others_wrote(chat: Chat, door: Door, pool: Pool) -> None:
    await post(door, "mine")
    await _written_by_popagent(pool)

    before = (await door.ask(ListChannels())).items[0]
    read = await door.ask(MarkChannelRead(channel_id=GENERAL, seq=99))
    back = await door.ask(MarkChannelRead(channel_id=GENERAL, seq=1))

    assert (before.last_seq, before.last_read_seq, before.unread) == (2, 0, 1)
    assert (read.last_read_seq, read.unread) == (2, 0)
    assert back == read


async def test_nobody_edits_what_popagent_wrote_and_anybody_may_delete_it(chat: Chat, door: Door, pool: Pool) -> None:
    await _written_by_popagent(pool)

    with pytest.raises(NotYourMessageError):
        await door.ask(EditMessage(channel_id=GENERAL, message_id="by-popagent", body="other"))
    with pytest.raises(KeyUsedError):
        await post(door, "words", "by-popagent")

    assert (await door.ask(DeleteMessage(channel_id=GENERAL, message_id="by-popagent"))).deleted_at is not None


async def test_what_does_not_exist_is_named(chat: Chat, door: Door) -> None:
    refused: dict[str, AppError] = {}
    for name, request in {
        "channel": ReadChannel(channel_id="none"),
        "read": MarkChannelRead(channel_id="none", seq=1),
        "message": DeleteMessage(channel_id=GENERAL, message_id="none"),
        "thread": PostMessage(command_id="m", channel_id=GENERAL, post=PostBody(body="x", thread_id="none")),
        "workspace": PostMessage(command_id="m", channel_id=GENERAL, post=PostBody(body="x", workspace_id="none")),
        "agent": PatchChannelSettings(command_id="c", body=ChannelSettingsPatch(agent_id="librarian")),
        "revision": PatchChannelSettings(command_id="c", body=ChannelSettingsPatch(revision=7, auto_reply=True)),
        "null": PatchChannelSettings(command_id="c", body=ChannelSettingsPatch(auto_reply=None)),
    }.items():
        with pytest.raises(AppError) as caught:
            await door.ask(request)
        refused[name] = caught.value

    assert {name: type(error) for name, error in refused.items()} == {
        "channel": NotFoundError,
        "read": NotFoundError,
        "message": NotFoundError,
        "thread": InvalidInputError,
        "workspace": InvalidInputError,
        "agent": InvalidInputError,
        "revision": RevisionConflictError,
        "null": InvalidInputError,
    }
    assert [refused[name].field for name in ("thread", "workspace", "agent", "null")] == [
        "threadId",
        "workspaceId",
        "agentId",
        "autoReply",
    ]


async def _written_by_popagent(pool: Pool) -> None:
    await pool.execute(
        """
        with numbered as (
            update channels set last_seq = last_seq + 1, revision = revision + 1 returning id, last_seq, revision
        )
        insert into channel_messages (id, channel_id, seq, revision, author_kind, author_id, author_name, body)
        select 'by-popagent', id, last_seq, revision, 'system', 'popagent', 'popagent', 'It is done.' from numbered
        """
    )


@pytest.mark.usefixtures("owners")
async def test_a_workspace_that_the_history_refers_to_stays_until_those_messages_are_deleted(
    chat: Chat, door: Door, root: Path
) -> None:
    (root / "marsh").mkdir()
    body = RegisterWorkspaceBody(name="Marsh", path="marsh")
    workspace = await door.ask(RegisterWorkspace(command_id=new_id(), body=body))
    message = await post(door, "Look here.", workspace_id=workspace.id)

    with pytest.raises(ConflictError, match="1 message refers") as refused:
        await door.ask(DeleteWorkspace(workspace_id=workspace.id))
    await door.ask(DeleteMessage(channel_id=GENERAL, message_id=message.id))
    gone = await door.ask(DeleteWorkspace(workspace_id=workspace.id))

    assert (message.workspace_id, gone.id) == (workspace.id, workspace.id)
    assert refused.value.extra["messages"] == 1
