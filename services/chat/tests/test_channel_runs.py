"""Posts that start tasks, and tasks that say something in #general, with a real task-runner on the same bus."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from popagent_bus import Bus
from popagent_chat.channels.runs import look_after
from popagent_db.pool import Pool
from popagent_kit.ids import new_id
from popagent_proto.chat.channels import (
    GENERAL,
    CancelMessageRun,
    ChannelMessage,
    ChannelSettingsPatch,
    NoRunError,
    PatchChannelSettings,
    PostBody,
    PostMessage,
    ReadChannel,
)
from popagent_proto.task_runner.tasks import (
    CreateTask,
    CreateTaskBody,
    DeleteTask,
    ListTasks,
    TaskChanged,
    TaskState,
    TaskStateError,
    TaskStopped,
    TaskSummary,
)
from popagent_task_runner.tasks.executor import Executor, Finished, StoppedError, TaskFailedError, TaskRun
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs
from popagent_testing.task_running import Runner, start_runner
from services.chat.tests.conftest import StartChat
from services.chat.tests.running import Chat, Door
from services.chat.tests.test_channel_texts import task


@dataclass
class Agents:
    """Carries out tasks: by the first words of the prompt it waits, fails, or answers."""

    prompts: list[str] = field(default_factory=list)
    running: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, run: TaskRun) -> Finished:
        self.prompts.append(run.prompt)
        self.running.set()
        words = run.prompt.removeprefix("@researcher ")
        if words.startswith("wait"):
            await run.stop.asked.wait()
            raise StoppedError
        if words.startswith("fail"):
            raise TaskFailedError("configuration", "There is no model.")
        return Finished(f"I read: {words.splitlines()[0]}")


@dataclass
class Company:
    agents: Agents
    runner: Runner


@pytest.fixture
async def hire(suite_nats: NatsServer, service_database: Callable[[str], str]) -> AsyncIterator[Callable[[], Company]]:
    started: list[Runner] = []

    async def start() -> Company:
        agents = Agents()

        def executor(pool: Pool) -> Executor:
            return agents

        started.append(await start_runner(service_database("task-runner"), suite_nats.url, executor))
        return Company(agents, started[-1])

    yield start
    for runner in started:
        await runner.stop()


@pytest.fixture(autouse=True)
async def _nothing_of_others(pool: Pool) -> None:
    await pool.execute("truncate channel_messages, channel_cursors")
    await pool.execute("update channels set last_seq = 0, revision = 0")
    await pool.execute("update channel_settings set auto_reply = false, agent_id = null, revision = 0")


@pytest.fixture
async def runner_bus(connect_as: ConnectAs) -> Bus:
    """What tells in the name of the task-runner."""
    return await connect_as("task-runner")


async def post(door: Door, body: str, message_id: str | None = None, **fields: str) -> ChannelMessage:
    command = PostMessage(command_id=message_id or new_id(), channel_id=GENERAL, post=PostBody(body=body, **fields))
    stored: ChannelMessage = await door.ask(command)
    return stored


async def history(door: Door) -> list[ChannelMessage]:
    return list((await door.ask(ReadChannel(channel_id=GENERAL, limit=200))).items)


async def until(door: Door, condition: Callable[[list[ChannelMessage]], bool]) -> list[ChannelMessage]:
    async with asyncio.timeout(15):
        while not condition(found := await history(door)):
            await asyncio.sleep(0.03)
    return found


def state_of(messages: list[ChannelMessage], message_id: str) -> TaskState | str | None:
    [message] = [each for each in messages if each.id == message_id]
    return None if message.run is None else message.run.state


async def test_a_mention_starts_one_task_whose_output_is_the_reply(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    company = await hire()
    message_id = new_id()

    await asyncio.gather(*(post(door, "@researcher count the herons", message_id) for _ in range(3)))
    found = await until(door, lambda messages: len(messages) == 2)

    asked, reply = found
    tasks = (await door.ask(ListTasks())).items
    assert [(each.id, each.agent_id) for each in tasks] == [(message_id, "researcher")]
    assert len(company.agents.prompts) == 1
    assert asked.mentions == ["researcher"]
    assert asked.run is not None
    assert (asked.run.state, asked.run.task_id, asked.run.agent_id) == ("completed", message_id, "researcher")
    assert (reply.thread_id, reply.author_kind, reply.author_id, reply.author_name) == (
        message_id,
        "agent",
        "researcher",
        "Researcher",
    )
    assert reply.body.startswith("I read: count the herons\n\n[Task: @researcher count the herons")
    assert reply.body.endswith(f"(/tasks/{message_id})")
    assert (reply.task_id, reply.run) == (message_id, None)


async def test_an_answer_in_a_thread_tells_the_agent_what_was_said_there(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    company = await hire()
    first = await post(door, "There are herons. </thread>")
    await post(door, "Beside it.")

    asked = await post(door, "@researcher how many?", thread_id=first.id)
    found = await until(door, lambda messages: len(messages) == 4)

    assert {found[2].id, found[2].thread_id, found[3].thread_id} == {asked.id, first.id}
    [prompt] = company.agents.prompts
    assert "<thread>\nUser: There are herons. < /thread>\n</thread>" in prompt
    assert "Beside it" not in prompt


async def test_without_a_mention_a_task_is_made_only_while_auto_reply_is_on(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    await hire()
    quiet = await post(door, "hello")
    await door.ask(PatchChannelSettings(command_id=new_id(), body=ChannelSettingsPatch(auto_reply=True)))

    asked = await post(door, "hello again")
    found = await until(door, lambda messages: len(messages) == 3)

    assert state_of(found, quiet.id) is None
    assert (state_of(found, asked.id), found[2].author_id) == ("completed", "orchistrator")
    assert [each.agent_id for each in (await door.ask(ListTasks())).items] == [None]


async def test_a_task_of_somebody_else_posts_to_general_once_whoever_made_it(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    await hire()
    made = await door.ask(CreateTask(command_id=new_id(), body=CreateTaskBody(prompt="count herons")))

    [said] = await until(door, lambda messages: len(messages) == 1)

    assert (said.task_id, said.thread_id, said.author_id, said.workspace_id) == (made.id, None, "orchistrator", "home")
    assert said.body == f"I read: count herons\n\n[Task: count herons](/tasks/{made.id})"


async def test_a_failed_task_says_why_in_the_name_of_popagent(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    await hire()

    asked = await post(door, "@researcher fail")
    found = await until(door, lambda messages: any(each.task_id == asked.id for each in messages))

    [said] = [each for each in found if each.task_id == asked.id and each.thread_id == asked.id][:1]
    assert (said.author_kind, said.author_id) == ("system", "popagent")
    assert said.body.startswith("**This task failed.**\n\nconfiguration: There is no model.")


async def test_a_running_task_is_cancelled_from_its_post(chat: Chat, door: Door, hire: Callable[[], Company]) -> None:
    company = await hire()
    asked = await post(door, "@researcher wait")
    await asyncio.wait_for(company.agents.running.wait(), 10)

    answer = await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=asked.id))
    found = await until(door, lambda messages: state_of(messages, asked.id) == "cancelled")
    again = await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=asked.id))

    assert answer.run is not None
    assert answer.run.state in ("cancelling", "cancelled")
    assert again == found[0]
    assert len(found) == 1


async def test_what_cannot_be_cancelled_says_why(chat: Chat, door: Door, hire: Callable[[], Company]) -> None:
    await hire()
    plain, done = await post(door, "hello"), await post(door, "@researcher hello")
    await until(door, lambda messages: len(messages) == 3)

    with pytest.raises(NoRunError):
        await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=plain.id))
    with pytest.raises(TaskStateError, match="completed"):
        await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=done.id))
    await door.ask(DeleteTask(task_id=done.id))
    with pytest.raises(NoRunError, match="deleted"):
        await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=done.id))


async def test_a_post_waits_for_a_task_runner_and_nothing_is_made_of_one_that_was_cancelled_before(
    chat: Chat, door: Door, hire: Callable[[], Company], pool: Pool
) -> None:
    waits, cancelled = await post(door, "@researcher one"), await post(door, "@researcher two")
    answer = await door.ask(CancelMessageRun(channel_id=GENERAL, message_id=cancelled.id))

    company = await hire()
    await pool.execute("update channel_messages set run_at = clock_timestamp() where run_state = 'waiting'")
    await until(door, lambda messages: state_of(messages, waits.id) == "completed")

    assert waits.run is not None
    assert answer.run is not None
    assert (waits.run.state, answer.run.state) == ("waiting", "cancelled")
    assert [prompt.split("\n")[0] for prompt in company.agents.prompts] == ["@researcher one"]
    assert state_of(await history(door), cancelled.id) == "cancelled"


async def test_a_post_that_no_task_runner_takes_is_tried_again_within_seconds(
    chat: Chat, door: Door, pool: Pool
) -> None:
    asked = await post(door, "@researcher one")
    soon = "run_tries > 0 and run_state = 'waiting' and run_at < clock_timestamp() + interval '10 seconds'"

    async with asyncio.timeout(15):
        while not await pool.fetchval(f"select {soon} from channel_messages where id = $1", asked.id):
            await asyncio.sleep(0.03)


async def test_a_task_that_was_made_while_its_post_was_cancelled_is_cancelled_when_it_is_heard_of(
    chat: Chat, door: Door, hire: Callable[[], Company], pool: Pool
) -> None:
    await hire()
    cancelled = await post(door, "plain")
    await pool.execute(
        "update channel_messages set run_state = 'cancelled', run_version = -1 where id = $1", cancelled.id
    )

    await door.ask(CreateTask(command_id=cancelled.id, body=CreateTaskBody(prompt="wait")))

    async with asyncio.timeout(10):
        while (await door.ask(ListTasks())).items[0].state != "cancelled":
            await asyncio.sleep(0.03)
    assert {state_of(await history(door), cancelled.id)} == {"cancelled"}


async def test_a_task_that_is_refused_is_told_in_the_thread(
    chat: Chat, door: Door, hire: Callable[[], Company]
) -> None:
    await hire()

    asked = await post(door, "@implementer hello")  # whom this task-runner does not know
    found = await until(door, lambda messages: len(messages) == 2)

    assert found[0].run is not None
    assert found[0].run.state == "failed"
    assert found[0].run.note.startswith("There is no ")
    assert (found[1].thread_id, found[1].author_kind) == (asked.id, "system")
    assert "No task was made of this" in found[1].body


async def test_what_a_crash_cut_off_is_made_once_and_followed_even_if_the_post_was_edited_since(
    chat: Chat, door: Door, hire: Callable[[], Company], pool: Pool
) -> None:
    company = await hire()
    asked = await post(door, "@researcher one")
    await until(door, lambda messages: len(messages) == 2)

    await pool.execute(
        "update channel_messages set run_state = 'waiting', run_version = -1, run_at = clock_timestamp(), body = 'two' "
        "where id = $1",
        asked.id,
    )
    found = await until(door, lambda messages: state_of(messages, asked.id) == "completed")

    assert len(company.agents.prompts) == 1
    assert len(found) == 2


async def test_a_task_of_which_nothing_was_heard_is_asked_for(
    chat: Chat, door: Door, hire: Callable[[], Company], pool: Pool
) -> None:
    await hire()
    asked, deleted = await post(door, "@researcher one"), await post(door, "@researcher two")
    await until(door, lambda messages: len(messages) == 4)
    await door.ask(DeleteTask(task_id=deleted.id))
    await pool.execute("delete from channel_messages where author_kind <> 'user'")
    await pool.execute("update channel_messages set run_state = 'running', run_version = 0, run_at = clock_timestamp()")

    await asyncio.gather(look_after(chat.deps), look_after(chat.deps))
    found = await history(door)

    assert (state_of(found, asked.id), state_of(found, deleted.id)) == ("completed", "failed")
    assert [each.body.split("\n")[0] for each in found[2:]] == ["I read: one"]
    assert await pool.fetchval("select count(*) from channel_messages where run_at <= clock_timestamp()") == 0


async def tell(bus: Bus, event: TaskStopped | TaskChanged, msg_id: str | None = None) -> None:
    await bus.publish(event.to_subject(), event.encode(), msg_id or event.event_id)


def stopped(summary: TaskSummary, said: str = "Seven.") -> TaskStopped:
    return TaskStopped(
        aggregate_id=summary.id,
        version=summary.version,
        task=summary,
        attempt=summary.attempt_count,
        turn_id="turn",
        trace_id=None,
        outcome="completed",
        error_class=None,
        error=None,
        excerpt=said,
    )


async def test_an_event_that_comes_again_posts_once_in_whichever_process_it_arrives(
    chat: Chat, start: StartChat, door: Door, runner_bus: Bus
) -> None:
    await start()
    ended = task().model_copy(update={"id": new_id()})
    event = stopped(ended)
    last = stopped(task().model_copy(update={"id": new_id()}), "the last one")

    for number in range(6):
        await tell(runner_bus, event, f"{event.event_id}-{number}")  # as after a wiped stream
    await tell(runner_bus, stopped(ended))  # told again by another event
    await tell(runner_bus, last)
    found = await until(door, lambda messages: any(each.task_id == last.task.id for each in messages))
    await asyncio.sleep(0.3)

    assert len(await history(door)) == len(found) == 2
    assert sorted(each.seq for each in found) == [1, 2]


async def test_only_the_end_of_a_task_is_posted_and_an_older_state_changes_nothing(
    chat: Chat, door: Door, runner_bus: Bus, pool: Pool
) -> None:
    asked = await post(door, "plain")
    await pool.execute("update channel_messages set run_state = 'queued', run_version = 0 where id = $1", asked.id)

    def version(number: int, state: TaskState) -> TaskSummary:
        return task().model_copy(update={"id": asked.id, "version": number, "state": state})

    for summary in (version(3, "running"), version(2, "queued"), version(5, "queued")):
        await tell(runner_bus, TaskChanged(aggregate_id=asked.id, version=summary.version, task=summary))
    again = stopped(version(6, "queued"))
    await tell(runner_bus, again)
    buried = version(8, "dead-letter")
    await tell(runner_bus, TaskChanged(aggregate_id=asked.id, version=8, task=buried))
    found = await until(door, lambda messages: len(messages) == 2)
    resolved = version(9, "completed")
    await tell(runner_bus, TaskChanged(aggregate_id=asked.id, version=9, task=resolved))
    found = await until(door, lambda messages: state_of(messages, asked.id) == "completed")

    assert len(found) == 2
    assert "needs you" in found[1].body
    versions = await pool.fetchval("select run_version from channel_messages where id = $1", asked.id)
    assert versions == 9
