"""Tasks carried out by real agents: chat says what they begin with, the scripted model answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from popagent_bus import Bus
from popagent_db.pool import Pool, open_pool
from popagent_host import Service
from popagent_host.health import Health
from popagent_proto import matrix
from popagent_proto.task_runner.tasks import CancelTask, TaskState, TaskView
from popagent_rows.leased import Holder
from popagent_rows.outbox import Outbox
from popagent_rows.pulse import Pulse
from popagent_task_runner.app import build
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_testing.model_replies import Reply, call
from popagent_testing.model_server import ModelServer
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import PASSWORDS, ConnectAs
from services.chat.tests.running import Chat, start_chat

from .conftest import Door


@pytest.fixture(scope="module")
def model_server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def model(model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    monkeypatch.setenv("POPAGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("POPAGENT_MODEL_URL", model_server.url)
    yield model_server
    model_server.reset()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "default").mkdir(parents=True)
    (tmp_path / "root" / "default" / "README.md").write_text("The word of the day is heron.\n")
    return tmp_path / "root"


@pytest.fixture
async def chat(
    service_database: Callable[[str], str], suite_nats: NatsServer, root: Path, model: ModelServer
) -> AsyncIterator[Chat]:
    started = await start_chat(service_database("chat"), suite_nats.url, root)
    yield started
    await started.stop()


@pytest.fixture
async def runner(dsn: str, suite_nats: NatsServer, root: Path, chat: Chat) -> AsyncIterator[Pool]:
    """The task-runner, wired as its host wires it; it knows no model of its own."""
    async with AsyncExitStack() as closing:
        pool = await open_pool(dsn, application_name="popagent-task-runner", max_size=8)
        closing.push_async_callback(pool.close)
        user = matrix.BY_NAME["task-runner"].role
        bus = await Bus.connect(suite_nats.url, service="task-runner", user=user, password=PASSWORDS["task-runner"])
        closing.push_async_callback(bus.drain)
        pulse = Pulse(pool, period_s=0.1)
        pulse.start()
        closing.push_async_callback(pulse.stop)
        outbox = Outbox(pool, bus.publish)
        outbox.start(pulse)
        closing.push_async_callback(outbox.stop)
        service: Service[TaskRunnerSettings] = Service(
            "task-runner",
            TaskRunnerSettings.for_service("task-runner").model_validate({"workspace_root": root, "stop_grace_s": 0.0}),
            pool,
            bus,
            outbox,
            pulse,
            Holder.of_this_process(),
            Health("task-runner", "test"),
            closing,
            asyncio.get_running_loop().create_future(),
        )
        await build(service)
        assert service.served is not None
        await bus.serve(service.served.handlers, service.served.deps)
        closing.push_async_callback(bus.stop_serving)
        yield pool


@pytest.fixture
async def door(connect_as: ConnectAs, runner: Pool) -> Door:
    return Door(await connect_as("gateway"), runner)


async def ended(door: Door, task_id: str, *states: TaskState) -> TaskView:
    return await door.until(task_id, *(states or ("completed", "failed", "dead-letter", "cancelled")))


async def test_an_agent_carries_a_task_out_and_its_transcript_tells_how(door: Door, model: ModelServer) -> None:
    model.script(Reply(text="I look.", tool_calls=(call("read", path="README.md"),)), Reply(text="The word is heron."))

    made = await door.create("Which word is it?", workspace_id="default")
    task = await ended(door, made.id)

    assert (task.state, task.output) == ("completed", "The word is heron.")
    calls = [each for record in task.activity for each in record.calls]
    assert {each.tool for each in calls} == {"read"}
    assert any("heron" in (each.result or "") for each in calls)
    assert {record.agent_id for record in task.activity if record.kind != "status"} == {"orchistrator"}
    assert await door.pool.fetchval("select count(*) from model_usage") == 2


async def test_a_specialist_works_with_its_own_rights_and_is_seen_in_the_transcript(
    door: Door, model: ModelServer, root: Path
) -> None:
    model.script(
        Reply(tool_calls=(call("agent-implementer", prompt="Write the word down."),)),
        Reply(tool_calls=(call("write", path="word.txt", content="heron\n"),)),
        Reply(text="It stands in word.txt."),
        Reply(text="Done."),
    )

    made = await door.create("Write the word down.", workspace_id="default")
    task = await ended(door, made.id)

    assert (task.state, task.output) == ("completed", "Done.")
    assert (root / "default" / "word.txt").read_text() == "heron\n"
    seen = {record.agent_id: [each.tool for each in record.calls] for record in task.activity if record.calls}
    assert seen["implementer"] == ["write"]
    intents = await door.pool.fetch("select tool from task_intents where task_id = $1", made.id)
    assert "write" in {row["tool"] for row in intents}


def script_two(model: ModelServer, *answer: Reply) -> None:
    """The implementer asks the reviewer, and waits for what it says."""
    question = call("agentCommunication", operation="send", to="reviewer", message="Is heron spelt right?")
    model.script(
        Reply(tool_calls=(call("agent-implementer", prompt="Write the word down."),), when="Have it written"),
        Reply(tool_calls=(question,), when="Write the word down."),
        Reply(tool_calls=(call("agentCommunication", operation="wait"),), when="was woken by it"),
        *answer,
        Reply(tool_calls=(call("write", path="word.txt", content="heron\n"),), when="It is spelt right."),
        Reply(text="It stands in word.txt.", when="word.txt"),
        Reply(text="Done."),
    )


async def test_two_specialists_of_a_task_talk_and_both_are_seen_in_the_transcript(
    door: Door, model: ModelServer, root: Path
) -> None:
    script_two(model, Reply(text="It is spelt right.", when="Is heron spelt right?"))

    made = await door.create("Have it written", workspace_id="default")
    task = await ended(door, made.id)

    assert (task.state, task.output, task.attempt_count) == ("completed", "Done.", 1)
    assert (root / "default" / "word.txt").read_text() == "heron\n"
    said = {record.agent_id: record.text for record in task.activity if record.kind == "step" and record.text}
    assert said["reviewer"] == "It is spelt right."
    begun = [record.text for record in task.activity if record.kind == "status" and record.agent_id is not None]
    assert begun == ["Works on: Write the word down.", "Asked by implementer: Is heron spelt right?"]
    letters = [each for record in task.activity for each in record.calls if each.tool == "agentCommunication"]
    assert {each.status for each in letters} == {"running", "completed"}
    assert any("the answer to letter-1:\nIt is spelt right." in (each.result or "") for each in letters)


async def test_a_cancelled_task_leaves_nobody_at_work(door: Door, model: ModelServer) -> None:
    script_two(model, Reply(text="I look around. " * 40, hold=True, after=80, when="Is heron spelt right?"))
    made = await door.create("Have it written", workspace_id="default")
    async with asyncio.timeout(15):
        while model.held == 0:
            await asyncio.sleep(0.02)

    await door.ask(CancelTask(task_id=made.id))
    task = await ended(door, made.id)

    assert task.state == "cancelled"
    async with asyncio.timeout(15):
        while any(each.outcome == "running" for each in model.requests):
            await asyncio.sleep(0.02)
    assert len(model.requests) == 4


async def test_a_task_for_a_specialist_gives_work_to_nobody(door: Door, model: ModelServer) -> None:
    model.script(Reply(text="Looked."))

    made = await door.create("Look.", workspace_id="default", agent_id="researcher")
    task = await ended(door, made.id)

    assert task.output == "Looked."
    offered = {tool["function"]["name"] for tool in model.requests[-1].body["tools"]}
    assert not {name for name in offered if name.startswith("agent")}
    assert "write" not in offered


async def test_what_a_hook_refuses_is_refused_in_a_task_too_and_never_tried_again(
    door: Door, model: ModelServer, chat: Chat
) -> None:
    await chat.pool.execute(
        "insert into hooks (id, name, event, matcher, kind, url, argv, timeout_ms, on_failure, order_index, enabled,"
        " revision) values ('h1', 'Guard', 'PreToolUse', 'read', 'http', 'http://127.0.0.1:1/', '{}', 300, 'block', 1,"
        " true, 0)"
    )
    model.script(Reply(tool_calls=(call("read", path="README.md"),)), Reply(text="It was refused."))

    made = await door.create("Read it.", workspace_id="default")
    task = await ended(door, made.id)

    assert task.output == "It was refused."
    runs = await door.pool.fetch("select event, decision from hook_runs where task_id = $1", made.id)
    assert [(row["event"], row["decision"]) for row in runs] == [("PreToolUse", "deny")]


async def test_a_model_that_fails_is_waited_for_and_the_task_ends_well(door: Door, model: ModelServer) -> None:
    model.script(*[Reply(status=500, error="broken")] * 3, Reply(text="Here."))

    made = await door.create("Say something.", workspace_id="default")
    task = await ended(door, made.id)

    assert (task.state, task.output, task.attempt_count) == ("completed", "Here.", 2)


async def test_a_task_that_is_cancelled_ends_its_model_call(door: Door, model: ModelServer) -> None:
    model.script(Reply(text="one two three", hold=True, after=1))
    made = await door.create("Write long.", workspace_id="default")
    await door.until(made.id, "running")

    await door.ask(CancelTask(task_id=made.id))
    task = await ended(door, made.id)

    assert task.state == "cancelled"


async def test_the_agents_profile_and_skills_are_those_of_the_moment(
    door: Door, model: ModelServer, chat: Chat
) -> None:
    await chat.pool.execute(
        "update agents set instructions = 'You speak like a sailor.', revision = 9 where id = 'orchistrator'"
    )
    model.script(Reply(text="Ahoy."))

    made = await door.create("Greet.", workspace_id="default")
    await ended(door, made.id)

    assert "sailor" in model.requests[-1].body["messages"][0]["content"]


async def test_a_task_is_told_how_the_company_is_doing_and_finds_itself(door: Door, model: ModelServer) -> None:
    model.script(Reply(tool_calls=(call("companyStatus"),)), Reply(text="All is well."))

    made = await door.create("How are we doing?", workspace_id="default")
    task = await ended(door, made.id)

    [told] = {each.result for record in task.activity for each in record.calls if each.result}
    assert task.output == "All is well."
    assert f"“How are we doing?” (task {made.id} in default)" in told
    assert "“Default workspace” (default)" in told
    assert "Schedules: cannot be read now." in told
