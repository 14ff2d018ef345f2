from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any

import pytest

from popagent_bus import Bus, Handlers, RemoteError
from popagent_bus.replies import FAILURE_HEADER
from popagent_kit import json
from popagent_kit.errors import (
    AppError,
    InternalError,
    InvalidInputError,
    NoAnswerError,
    NotFoundError,
    RevisionConflictError,
    TooLargeError,
    UnavailableError,
)
from popagent_proto.base import Request, View
from popagent_telemetry import current_trace_id, span
from popagent_testing.servers import NatsServer
from popagent_testing.suite_bus import ConnectAs, Echo, EchoView, Look, StopOne, until

handlers: Handlers[list[str]] = Handlers()


@pytest.fixture
def suite_nats(shared_suite_nats: NatsServer) -> NatsServer:
    return shared_suite_nats


class OddError(AppError):
    code = "odd"
    http_status = 418


@handlers.answers(Echo)
async def echo(seen: list[str], command: Echo) -> EchoView:
    seen.append(command.text)
    match command.text:
        case "conflict":
            raise RevisionConflictError(field="revision", extra={"session": {"id": "s"}})
        case "odd":
            raise OddError("odd thing")
        case "defect":
            raise ZeroDivisionError("a secret detail")
        case "patient":
            while "quick" not in seen:
                await asyncio.sleep(0.01)
        case "slow":
            await asyncio.sleep(0.7)
        case "huge":
            return EchoView(text="x" * 9_000_000)
        case "trace":
            return EchoView(text=current_trace_id() or "")
    return EchoView(text=command.text)


@handlers.answers(Look)
async def look(seen: list[str], query: Look) -> EchoView:
    return EchoView(text=str(len(seen)))


@handlers.answers(StopOne)
async def stop_one(seen: list[str], command: StopOne) -> EchoView:
    return EchoView(text=command.turn_id)


@pytest.fixture
def seen() -> list[str]:
    """What the owner was asked."""
    return []


@pytest.fixture
async def chat(connect_as: ConnectAs, seen: list[str]) -> Bus:
    bus = await connect_as("chat")
    await bus.serve(handlers, seen)
    return bus


@pytest.fixture
async def gateway(connect_as: ConnectAs, chat: Bus) -> Bus:
    return await connect_as("gateway")


async def test_a_question_is_answered_by_its_owner(gateway: Bus) -> None:
    assert await gateway.ask(Echo(text="hello")) == EchoView(text="hello")
    assert await gateway.ask(Look()) == EchoView(text="1")
    assert await gateway.ask(StopOne(turn_id="t-1")) == EchoView(text="t-1")
    assert gateway.state.problem() is None


async def test_a_refusal_is_raised_as_the_same_class_with_all_it_said(gateway: Bus) -> None:
    with pytest.raises(RevisionConflictError) as raised:
        await gateway.ask(Echo(text="conflict"))

    assert raised.value.message == "revision conflict"
    assert raised.value.field == "revision"
    assert raised.value.extra == {"session": {"id": "s"}}


async def test_an_error_unknown_to_the_caller_keeps_code_and_status(
    gateway: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(AppError.by_code, "odd")

    with pytest.raises(RemoteError) as raised:
        await gateway.ask(Echo(text="odd"))

    assert (raised.value.code, raised.value.http_status, raised.value.message) == ("odd", 418, "odd thing")


async def test_a_defect_is_told_by_its_trace_and_nothing_else(gateway: Bus, caplog: pytest.LogCaptureFixture) -> None:
    with span("request"):
        trace_id = current_trace_id()
        with pytest.raises(InternalError) as raised:
            await gateway.ask(Echo(text="defect"))

    assert trace_id is not None
    assert trace_id in raised.value.message
    assert "secret detail" not in raised.value.message
    assert "a secret detail" in caplog.text


async def test_the_trace_goes_on_at_the_owner(gateway: Bus) -> None:
    with span("request"):
        answer = await gateway.ask(Echo(text="trace"))

        assert answer.text == current_trace_id()


async def test_no_answer_in_time_is_told_apart_from_nobody_there(gateway: Bus, chat: Bus) -> None:
    with pytest.raises(NoAnswerError):
        await gateway.ask(Echo(text="slow"), timeout_s=0.1)
    await chat.drain()

    before = gateway.client.stats["out_msgs"]
    started = perf_counter()
    with pytest.raises(UnavailableError) as raised:
        await gateway.ask(Echo(text="gone"), patience_s=1)

    assert perf_counter() - started > 0.9
    assert gateway.client.stats["out_msgs"] - before > 5  # it was asked again and again
    assert raised.value.retry_after_s == 1


async def test_who_takes_too_long_says_so_in_a_plain_sentence_and_the_log_names_the_request(
    gateway: Bus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Request, "answer_within_s", 0.1)

    with pytest.raises(UnavailableError) as late:
        await gateway.ask(Echo(text="slow"))
    monkeypatch.setattr(Echo, "answer_within_s", 9.0)

    assert late.value.message == "This took longer than 0.1 s and was given up. Try again in a moment."
    assert [record.subject for record in caplog.records if record.message == "request given up"] == [Echo.subject]
    assert (await gateway.ask(Echo(text="slow"))).text == "slow"


async def test_what_another_version_asks_or_answers_is_told_without_a_subject(
    gateway: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LaterView(View):
        words: str

    class EchoOfLater(Echo):
        @classmethod
        def reply_type(cls) -> type[View]:
            return LaterView

    with pytest.raises(InternalError) as odd:
        await gateway.ask(EchoOfLater(text="a"))
    monkeypatch.setattr(Echo, "subject", "popagent.chat.cmd.tests-echo.v9")
    with pytest.raises(NotFoundError) as unknown:
        await gateway.ask(Echo(text="a"))

    assert "cmd." not in unknown.value.message + odd.value.message


async def test_a_service_that_starts_within_the_patience_gets_the_question(connect_as: ConnectAs) -> None:
    gateway, chat = await connect_as("gateway"), await connect_as("chat")

    asking = asyncio.create_task(gateway.ask(Echo(text="early")))
    await asyncio.sleep(0.2)
    await chat.serve(handlers, [])

    assert (await asking).text == "early"


async def test_an_answer_over_the_limit_is_a_clear_failure(gateway: Bus) -> None:
    with pytest.raises(TooLargeError, match="more than a message may have"):
        await gateway.ask(Echo(text="huge"))
    for size in (9_000_000, gateway.max_payload, gateway.client.max_payload - 20):
        with pytest.raises(TooLargeError):
            await gateway.ask(Echo(text="x" * size))
    largest = "x" * (gateway.max_payload - len('{"text":""}'))
    assert (await gateway.ask(Echo(text=largest))).text == largest
    assert gateway.state.reconnects == 0


@pytest.mark.parametrize("bad", [">", "*", "a.b", "a b", "a\r\nb", "", "x" * 65, "é", "a\x00"])
async def test_an_id_that_would_break_a_subject_never_leaves(gateway: Bus, chat: Bus, bad: str) -> None:
    before = gateway.client.stats["out_msgs"]

    with pytest.raises(InvalidInputError) as raised:
        await gateway.ask(StopOne(turn_id=bad))

    assert raised.value.field == "turn_id"
    assert gateway.client.stats["out_msgs"] == before


@pytest.mark.parametrize("bad", [">", "*", "a b", "a\r\nb", "", "é", "a\x00"])
async def test_a_subject_or_message_id_that_is_not_plain_never_leaves(chat: Bus, bad: str) -> None:
    with pytest.raises(InvalidInputError):
        await chat.publish(f"popagent.chat.evt.tests-happened.v1.{bad}", b"{}", "id")
    with pytest.raises(InvalidInputError):
        await chat.publish("popagent.chat.evt.tests-happened.v1", b"{}", f"{bad}\r\nX: y")


@pytest.mark.parametrize(
    ("subject", "data", "code"),
    [
        ("popagent.chat.cmd.tests-echo.v1", b"not json", "malformed_json"),
        ("popagent.chat.cmd.tests-echo.v1", b"\xff\xfe", "malformed_json"),
        ("popagent.chat.cmd.tests-echo.v1", b"", "malformed_json"),
        ("popagent.chat.cmd.tests-echo.v1", b"[" * 100_000 + b"]" * 100_000, "malformed_json"),
        ("popagent.chat.cmd.tests-echo.v1", b"[]", "invalid_input"),
        ("popagent.chat.cmd.tests-echo.v1", b'{"text": 1}', "invalid_input"),
        ("popagent.chat.cmd.tests-echo.v1", b'{"text": "a", "more": 1}', "invalid_input"),
        ("popagent.chat.cmd.tests-echo.v1", b'{"more": "' + b"x" * 2_000_000 + b'"}', "invalid_input"),
        ("popagent.chat.cmd.tests-echo.v9", b'{"text": "a"}', "not_found"),
        ("popagent.chat.cmd.unknown.v1", b"{}", "not_found"),
    ],
)
async def test_a_bad_message_is_answered_with_a_failure_and_the_next_one_is_served(
    gateway: Bus, subject: str, data: bytes, code: str
) -> None:
    reply = await gateway.client.request(subject, data, timeout=2)

    assert json.loads(reply.data)["failure"]["code"] == code
    assert (reply.headers or {})[FAILURE_HEADER].isdigit()
    assert (await gateway.ask(Echo(text="next"))).text == "next"


async def test_a_reply_goes_to_an_inbox_and_nowhere_else(gateway: Bus, chat: Bus) -> None:
    seen: list[Any] = []

    async def take(message: Any) -> None:
        seen.append(message)

    await chat.client.subscribe("popagent.chat.cmd.stolen.v1", cb=take)
    await gateway.client.publish(
        "popagent.chat.cmd.tests-echo.v1", b'{"text": "forged"}', reply="popagent.chat.cmd.stolen.v1"
    )
    await gateway.ask(Echo(text="after"))

    assert seen == []


async def test_a_slow_request_does_not_hold_the_others(gateway: Bus, seen: list[str]) -> None:
    slow = [asyncio.create_task(gateway.ask(Echo(text="patient"))) for _ in range(10)]
    await until(lambda: seen == ["patient"] * 10)

    answer = await gateway.ask(Echo(text="quick"))

    assert answer.text == "quick"
    assert [(await task).text for task in slow] == ["patient"] * 10


async def test_leaving_in_order_is_no_loss_of_the_connection(
    connect_as: ConnectAs, caplog: pytest.LogCaptureFixture
) -> None:
    leaving = await connect_as("scheduler")

    await leaving.drain()
    await leaving.drain()

    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == []
    assert not leaving.state.connected


async def test_two_instances_restarted_in_turn_lose_no_request(connect_as: ConnectAs, gateway: Bus, chat: Bus) -> None:
    second = await connect_as("chat")
    slow: Handlers[None] = Handlers()

    @slow.answers(Look)
    async def look_slowly(_: None, query: Look) -> EchoView:
        await asyncio.sleep(0.25)
        return EchoView(text=query.text)

    await chat.drain()
    first = await connect_as("chat")
    await first.serve(slow, None)
    await second.serve(slow, None)
    running = [first, second]
    asked: list[asyncio.Task[EchoView]] = []

    async def load() -> None:
        for number in range(80):
            asked.append(asyncio.create_task(gateway.ask(Look(text=str(number)))))
            await asyncio.sleep(1 / 40)

    loading = asyncio.create_task(load())
    for index in (0, 1, 0):
        await asyncio.sleep(0.3)
        await running[index].drain()
        running[index] = await connect_as("chat")
        await running[index].serve(slow, None)
    await loading

    assert len(asked) == 80
    assert [(await task).text for task in asked] == [str(number) for number in range(len(asked))]
