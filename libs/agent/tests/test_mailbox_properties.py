"""Any order of sending, waiting, working and ending keeps the rules of letters."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from popagent_agent.letters import Letter, MailError, Silence
from popagent_agent.mailbox import MOST_WAKES, Mailbox, MailSession

NAMES = ("lead", "scout", "smith")


class Interleavings(RuleBasedStateMachine):
    """The session on an event loop that is turned by hand; what was written, read and waits is counted beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gates: list[asyncio.Event] = []
        self.mail = MailSession(dict.fromkeys(NAMES, ""), self.wake)
        self.boxes: dict[str, list[Mailbox]] = {name: [] for name in NAMES}
        self.sent: dict[str, Letter] = {}
        self.woke: dict[str, Letter] = {}
        self.read: list[str] = []
        self.answered: list[str] = []
        self.waits: list[tuple[Mailbox, asyncio.Task[Letter | Silence]]] = []
        self.closed = False

    async def wake(self, letter: Letter, mailbox: Mailbox) -> str:
        assert mailbox.identity == letter.recipient
        assert letter.reply_to is None
        self.woke[letter.id] = letter
        gate = asyncio.Event()
        self.gates.append(gate)
        await gate.wait()
        return ""

    def note(self, letter: Letter) -> None:
        assert letter.id not in self.read
        self.read.append(letter.id)
        if letter.reply_to is not None:
            assert letter.reply_to not in self.answered
            self.answered.append(letter.reply_to)

    def turn(self, act: Callable[[], Any] = lambda: None) -> Any:
        """Act in the loop, then let everything happen that can."""

        async def acting() -> Any:
            return act()

        result = self.loop.run_until_complete(acting())
        for _ in range(6):
            self.loop.run_until_complete(asyncio.sleep(0))
        for box, wait in [each for each in self.waits if each[1].done()]:
            self.waits.remove((box, wait))
            if not wait.cancelled() and wait.exception() is None and isinstance(came := wait.result(), Letter):
                assert came.recipient == box.identity
                self.note(came)
        return result

    def open(self, data: st.DataObject) -> Mailbox | None:
        boxes = [box for each in self.boxes.values() for box in each]
        return data.draw(st.sampled_from(boxes)) if boxes else None

    @precondition(lambda self: not self.closed)
    @rule(name=st.sampled_from(NAMES))
    def begin(self, name: str) -> None:
        if len(self.boxes[name]) < 2:
            self.boxes[name].append(self.turn(lambda: self.mail.enter(name)))

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        box = self.open(data)
        if box is not None and not any(each is box for each, _ in self.waits):
            self.boxes[box.identity].remove(box)
            self.turn(box.leave)

    @precondition(lambda self: not self.closed)
    @rule(data=st.data(), recipient=st.sampled_from(NAMES))
    def send(self, data: st.DataObject, recipient: str) -> None:
        box = self.open(data)
        if box is None or box.identity == recipient:
            return
        at_work = {peer.name: peer.at_work for peer in box.peers()}[recipient]
        waiting = any(each.identity == recipient for each, wait in self.waits if not wait.done())
        try:
            letter, delivery = self.turn(lambda: box.send(recipient, "x", "c"))
        except MailError:
            assert not at_work
            assert len(self.woke) >= MOST_WAKES
            return
        assert delivery == ("delivered" if waiting else "queued" if at_work else "woken")
        self.sent[letter.id] = letter

    @precondition(lambda self: not self.closed)
    @rule(data=st.data(), most=st.integers(0, 8))
    def take(self, data: st.DataObject, most: int) -> None:
        box = self.open(data)
        if box is not None:
            for letter in box.take(most=most):
                assert letter.recipient == box.identity
                self.note(letter)

    @precondition(lambda self: not self.closed and len(self.waits) < 3)
    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        box = self.open(data)
        if box is not None:
            self.waits.append((box, self.loop.create_task(box.wait(50))))
            self.turn()

    @precondition(lambda self: self.waits)
    @rule()
    def give_up(self) -> None:
        self.waits[0][1].cancel()
        self.turn()

    @precondition(lambda self: self.gates)
    @rule()
    def finish_woken(self) -> None:
        self.gates.pop(0).set()
        self.turn()

    @precondition(lambda self: self.sent and not self.closed)
    @rule(data=st.data())
    def reply(self, data: st.DataObject) -> None:
        letter = data.draw(st.sampled_from(list(self.sent.values())))
        wakes = len(self.woke)
        if self.boxes[letter.recipient]:
            box = self.boxes[letter.recipient][0]
            first = self.turn(lambda: box.reply(letter.id, "y"))
            assert self.turn(lambda: box.reply(letter.id, "z")) == first
            assert first[1] != "woken"
        assert len(self.woke) == wakes

    @precondition(lambda self: not self.closed)
    @rule()
    def close(self) -> None:
        self.closed = True
        self.loop.run_until_complete(self.mail.close())
        self.turn()
        self.gates.clear()
        assert not self.waits

    @invariant()
    def every_letter_is_read_once_or_waits_and_nobody_waits_for_nobody(self) -> None:
        if self.closed:
            return
        lying = [letter.id for each in self.mail._participants.values() for letter in each.letters]
        written = set(self.mail._letters)
        assert sorted([*self.read, *lying, *self.woke]) == sorted(written)
        assert len(self.woke) <= MOST_WAKES
        runs = [run for each in self.mail._participants.values() for run in each.runs]
        if self.waits:
            assert any(not run.is_held for run in runs)

    def teardown(self) -> None:
        for _, wait in self.waits:
            wait.cancel()
        self.loop.run_until_complete(self.mail.close())
        self.turn()
        self.loop.close()


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
