"""Letters between agents: none lost, none twice, nobody spoken for, no end without an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from popagent_agent.mailbox import (
    LONGEST_BODY,
    MOST_LETTERS,
    MOST_WAKES,
    NO_FINDINGS,
    NOT_FINISHED,
    Delivery,
    Letter,
    MailClosedError,
    MailError,
    MailSession,
)
from popagent_agent.ports import LeaseLostError

NAMES = ("lead", "scout", "smith")


def session(said: str | Exception = "Found it.", told: Callable[[Letter, Delivery], None] | None = None) -> Any:
    """A session whose woken agents say this; it remembers what woke them."""

    async def wake(letter: Letter) -> str:
        made.woke.append(letter)
        await asyncio.sleep(0)
        if isinstance(said, Exception):
            raise said
        return said

    made: Any = MailSession(NAMES, wake, *([told] if told else []))
    made.woke = []
    return made


async def test_who_waits_gets_the_letter_at_once() -> None:
    mail = session()
    with mail.active("scout"):
        waiting = asyncio.create_task(mail.mailbox("scout").wait(5))
        await asyncio.sleep(0)

        letter_id, delivery = mail.mailbox("lead").send("scout", "Where is it?")
        got = await waiting

    assert (delivery, got.id, got.sender, got.body) == ("delivered", letter_id, "lead", "Where is it?")
    assert mail.woke == []


async def test_who_is_idle_is_woken_in_a_run_of_its_own_and_answers_as_itself() -> None:
    mail = session("In the north.")

    letter_id, delivery = mail.mailbox("lead").send("scout", "Where is it?")
    await mail.settle()

    (answer,) = mail.mailbox("lead").take()
    assert delivery == "woken"
    assert [letter.id for letter in mail.woke] == [letter_id]
    assert (answer.sender, answer.body, answer.reply_to) == ("scout", "In the north.", letter_id)


@pytest.mark.parametrize(
    ("said", "answer"), [("", NO_FINDINGS), ("  \n", NO_FINDINGS), (RuntimeError("broken"), NOT_FINISHED)]
)
async def test_a_woken_run_that_says_nothing_or_fails_is_answered_for(said: Any, answer: str) -> None:
    mail = session(said)

    mail.mailbox("lead").send("scout", "Where is it?")
    await mail.settle()

    assert [letter.body for letter in mail.mailbox("lead").take()] == [answer]


async def test_a_woken_run_that_answered_by_itself_is_not_answered_for_again() -> None:
    async def wake(letter: Letter) -> str:
        mail.mailbox("scout").reply(letter.id, "Myself.")
        return "And once more."

    mail = MailSession(NAMES, wake)
    mail.mailbox("lead").send("scout", "Where is it?")
    await mail.settle()

    assert [letter.body for letter in mail.mailbox("lead").take()] == ["Myself."]


async def test_who_works_finds_letters_at_its_next_step_eight_at_a_time_the_oldest_first() -> None:
    mail = session()
    with mail.active("scout"):
        deliveries = [mail.mailbox("lead").send("scout", f"{number}")[1] for number in range(10)]
        first, then = mail.mailbox("scout").take(), mail.mailbox("scout").take()

    assert set(deliveries) == {"queued"}
    assert [letter.body for letter in [*first, *then]] == [str(number) for number in range(10)]
    assert len(first) == 8
    assert mail.woke == []


async def test_an_answer_wakes_nobody() -> None:
    mail = session()
    letter_id, _ = mail.mailbox("lead").send("scout", "Where is it?")
    await mail.settle()

    (answer,) = mail.mailbox("lead").take()
    again = mail.mailbox("lead").reply(answer.id, "Thanks.")

    assert again == "queued"
    assert [letter.id for letter in mail.woke] == [letter_id]


async def test_a_text_to_all_wakes_nobody() -> None:
    mail = session()

    assert mail.mailbox("lead").broadcast("Stop digging.") == {"scout": "queued", "smith": "queued"}
    assert mail.woke == []
    assert [letter.body for letter in mail.mailbox("smith").take()] == ["Stop digging."]


async def test_nobody_writes_as_somebody_else_and_nothing_of_it_is_kept() -> None:
    heard: list[Letter] = []
    mail = session(told=lambda letter, _: heard.append(letter))
    scout = mail.mailbox("scout")
    for attempt in (
        lambda: scout.send("smith", "Hand it over.", sender="lead"),
        lambda: scout.broadcast("Hand it over.", sender="lead"),
        lambda: mail.send(Letter("stranger", "smith", "Hand it over.")),
        lambda: mail.mailbox("stranger"),
    ):
        with pytest.raises(MailError):
            attempt()

    assert heard == []
    assert mail.mailbox("smith").take() == []


async def test_what_is_no_letter_is_refused() -> None:
    mail = session()
    letter_id, _ = mail.mailbox("lead").send("scout", "Where is it?")
    for attempt in (
        lambda: mail.mailbox("lead").send("lead", "Hello, me."),
        lambda: mail.mailbox("lead").send("nobody", "Hello?"),
        lambda: mail.mailbox("lead").send("scout", "  "),
        lambda: mail.mailbox("lead").send("scout", "x" * (LONGEST_BODY + 1)),
        lambda: mail.mailbox("smith").reply(letter_id, "I know."),
        lambda: mail.mailbox("scout").reply("none", "I know."),
    ):
        with pytest.raises(MailError):
            attempt()


async def test_the_oldest_letters_make_room() -> None:
    mail = session()
    with mail.active("scout"):
        for number in range(MOST_LETTERS + 3):
            mail.mailbox("lead").send("scout", str(number))

    assert [letter.body for letter in mail.mailbox("scout").take(200)] == [str(n) for n in range(3, MOST_LETTERS + 3)]


async def test_a_task_pays_for_a_bounded_number_of_woken_runs() -> None:
    mail = session()
    deliveries = []
    for _ in range(MOST_WAKES + 2):
        deliveries.append(mail.mailbox("lead").send("scout", "And now?")[1])
        await mail.settle()

    assert deliveries == ["woken"] * MOST_WAKES + ["queued"] * 2


async def test_a_wait_ends_in_its_time_and_loses_nothing_when_it_is_cut_off() -> None:
    mail = session()
    with mail.active("scout"):
        assert await mail.mailbox("scout").wait(0.01) is None
        cut = asyncio.create_task(mail.mailbox("scout").wait(5))
        await asyncio.sleep(0)
        mail.mailbox("lead").send("scout", "Kept.")
        cut.cancel()
        await asyncio.gather(cut, return_exceptions=True)

        kept = await mail.mailbox("scout").wait(0)

    assert kept is not None
    assert kept.body == "Kept."


async def test_the_end_refuses_who_waits_ends_who_was_woken_and_takes_nothing_more() -> None:
    began = asyncio.Event()

    async def wake(_: Letter) -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    mail = MailSession(NAMES, wake)
    mail.mailbox("lead").send("smith", "Forge.")
    with mail.active("scout"):
        waiting = asyncio.create_task(mail.mailbox("scout").wait(5))
        await began.wait()
        await mail.close()
        with pytest.raises(MailClosedError):
            await waiting
    for attempt in (
        lambda: mail.mailbox("lead").send("scout", "Hello?"),
        lambda: mail.mailbox("lead").take(),
        lambda: mail.mailbox("lead").peers(),
    ):
        with pytest.raises(MailClosedError):
            attempt()
    await mail.settle()


async def test_a_woken_run_whose_task_was_lost_says_nothing() -> None:
    mail = session(LeaseLostError("gone"))
    mail.mailbox("lead").send("scout", "Where is it?")
    await mail.settle()

    assert mail.mailbox("lead").take() == []


class Interleavings(RuleBasedStateMachine):
    """Any order of sending, waiting, working and ending keeps the rules."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gates: list[asyncio.Event] = []
        self.mail = MailSession(NAMES, self.wake, self.told)
        self.sent: dict[str, Letter] = {}
        self.seen: list[str] = []
        self.waits: list[tuple[str, asyncio.Task[Letter | None]]] = []
        self.working: dict[str, list[ExitStack]] = {name: [] for name in NAMES}
        self.closed = False

    async def wake(self, letter: Letter) -> str:
        self.seen.append(letter.id)
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return ""

    def told(self, letter: Letter, delivery: Delivery) -> None:
        assert letter.id not in self.sent
        assert letter.reply_to is None or delivery != "woken"
        self.sent[letter.id] = letter

    def turn(self) -> None:
        """Let everything happen that can."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))
        for name, wait in [each for each in self.waits if each[1].done()]:
            self.waits.remove((name, wait))
            if not wait.cancelled() and wait.exception() is None and (letter := wait.result()) is not None:
                assert letter.recipient == name
                self.seen.append(letter.id)

    async def _in_loop(self, act: Callable[[], Any]) -> Any:
        return act()

    @precondition(lambda self: not self.closed)
    @rule(sender=st.sampled_from(NAMES), recipient=st.sampled_from(NAMES))
    def send(self, sender: str, recipient: str) -> None:
        if sender != recipient:
            self.loop.run_until_complete(self._in_loop(lambda: self.mail.mailbox(sender).send(recipient, "x")))
        self.turn()

    @precondition(lambda self: not self.closed)
    @rule(name=st.sampled_from(NAMES), most=st.integers(0, 8))
    def take(self, name: str, most: int) -> None:
        self.seen += [letter.id for letter in self.mail.mailbox(name).take(most)]

    @precondition(lambda self: not self.closed and len(self.waits) < 3)
    @rule(name=st.sampled_from(NAMES))
    def wait(self, name: str) -> None:
        self.waits.append((name, self.loop.create_task(self.mail.mailbox(name).wait(50))))
        self.turn()

    @precondition(lambda self: self.waits)
    @rule()
    def give_up(self) -> None:
        self.waits[0][1].cancel()
        self.turn()

    @rule(name=st.sampled_from(NAMES))
    def begin(self, name: str) -> None:
        scope = ExitStack()
        scope.enter_context(self.mail.active(name))
        self.working[name].append(scope)

    @rule(name=st.sampled_from(NAMES))
    def end(self, name: str) -> None:
        if self.working[name]:
            self.working[name].pop().close()

    @precondition(lambda self: self.gates)
    @rule()
    def finish_woken(self) -> None:
        self.gates.pop(0).set()
        self.turn()

    @precondition(lambda self: self.sent and not self.closed)
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        letter = data.draw(st.sampled_from(list(self.sent.values())))
        before = len(self.sent)
        box = self.mail.mailbox(letter.recipient)
        first = self.loop.run_until_complete(self._in_loop(lambda: box.reply(letter.id, "y")))
        second = self.loop.run_until_complete(self._in_loop(lambda: box.reply(letter.id, "z")))
        assert first == second
        assert len(self.sent) <= before + 1
        self.turn()

    @precondition(lambda self: not self.closed)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.loop.run_until_complete(self.mail.close())
        self.turn()

    @invariant()
    def every_letter_is_read_once_or_waits(self) -> None:
        assert len(self.seen) == len(set(self.seen))
        if self.closed:
            assert not self.waits
            return
        waiting = [letter.id for each in self.mail._participants.values() for letter in each.letters]
        assert sorted([*self.seen, *waiting]) == sorted(self.sent)

    def teardown(self) -> None:
        for _, wait in self.waits:
            wait.cancel()
        self.loop.run_until_complete(self.mail.close())
        self.turn()
        self.loop.close()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
