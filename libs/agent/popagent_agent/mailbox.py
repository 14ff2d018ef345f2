"""Letters between the agents of one run: who waits gets them at once, who is idle is woken, who works finds them later.

All of it lives in the process that carries the run out, and ends with the run.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from popagent_agent.letters import (
    LARGEST_BODY_BYTES,
    LONGEST_WAIT_S,
    NO_FINDINGS,
    NOT_FINISHED,
    Delivery,
    Letter,
    MailClosedError,
    MailError,
    Peer,
    Silence,
    fitting,
)
from popagent_agent.ports import LeaseLostError

log = logging.getLogger(__name__)

MOST_LETTERS: Final = 100
# Letters that are read at once.
MOST_READ: Final = 8
# So many runs of woken agents a run may cost.
MOST_WAKES: Final = 16
# How many letters stay known, so that they can be answered.
MOST_KNOWN: Final = 1_000

Wake = Callable[[Letter, "Mailbox"], Awaitable[str]]
"""Carries out the recipient's own run for the letter, with the mailbox of that run; returns what it says last."""


@dataclass(slots=True)
class _Participant:
    about: str
    runs: set[Mailbox] = field(default_factory=set)
    letters: deque[Letter] = field(default_factory=lambda: deque(maxlen=MOST_LETTERS))
    waiters: deque[asyncio.Future[Letter | Silence]] = field(default_factory=deque)

    def waiting(self) -> asyncio.Future[Letter | Silence] | None:
        """Take the one that has waited longest, if somebody waits."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                return waiter
        return None


class MailSession:
    """The letters of one run among the agents `identities`, which say what each can be asked for.

    Whoever writes or reads does it with the mailbox of a run: there is no other way, so that nobody writes as another.
    """

    def __init__(self, identities: Mapping[str, str], wake: Wake) -> None:
        self._participants = {identity: _Participant(about) for identity, about in identities.items()}
        self._wake = wake
        self._numbers = itertools.count(1)
        self._letters: dict[str, Letter] = {}
        self._replies: dict[str, Delivery] = {}
        self._wakes = 0
        self._working: set[asyncio.Task[None]] = set()
        self._closed = False

    def enter(self, identity: str, path: str = "") -> Mailbox:
        """Begin a run of the agent, which must `leave`: letters to it wait for the run's next step.

        `path` are the calls that led to the run, from that of the whole work downwards.
        """
        self._check_open()
        mailbox = Mailbox(self, identity, path)
        self._participant(identity).runs.add(mailbox)
        return mailbox

    async def settle(self) -> None:
        """Return when no woken run goes on; one may wake another."""
        while self._working:
            await asyncio.wait(tuple(self._working))

    async def close(self) -> None:
        """End it: waiters are refused, letters are gone, woken runs are cancelled and have ended."""
        self._closed = True
        for participant in self._participants.values():
            participant.letters.clear()
            while waiter := participant.waiting():
                waiter.set_exception(MailClosedError())
        self._letters.clear()
        for run in tuple(self._working):
            run.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)

    def peers(self, identity: str) -> list[Peer]:
        """Return the others, in order."""
        self._check_open()
        return [
            Peer(name, participant.about, at_work=bool(participant.runs))
            for name, participant in self._participants.items()
            if name != identity
        ]

    def send(self, sender: Mailbox, recipient: str, body: str, call_id: str) -> tuple[Letter, Delivery]:
        """Take a letter; returns it and what became of it.

        Raises:
            MailError: It is not taken; nothing is kept of it.
        """
        participant = self._checked(sender, recipient, body)
        if not participant.runs and self._wakes >= MOST_WAKES:
            raise MailError(
                f"{recipient} is not at work, and nobody is woken any more: {MOST_WAKES} were. Go on without it."
            )
        letter = self._written(sender.identity, recipient, body, call_id=sender.below(call_id))
        return letter, self._handed(letter, participant) if participant.runs else self._woken(letter)

    def broadcast(self, sender: Mailbox, body: str) -> dict[str, Delivery]:
        """Send one text to everybody else; it wakes nobody, and who is idle finds it when woken by something else."""
        names = [name for name in self._participants if name != sender.identity]
        recipients = [self._checked(sender, name, body) for name in names]
        return {
            name: self._handed(self._written(sender.identity, name, body), recipient)
            for name, recipient in zip(names, recipients, strict=True)
        }

    def reply(self, sender: Mailbox, letter_id: str, body: str) -> tuple[str, Delivery]:
        """Answer a letter; returns who gets it. It wakes nobody: two who thank each other would never end.

        A second answer to it changes nothing.

        Raises:
            MailError: No such letter was written to the agent.
        """
        self._check_open()
        asked = self._letters.get(letter_id)
        if asked is None or asked.recipient != sender.identity:
            raise MailError(f"No letter {letter_id!r} was written to you.")
        return asked.sender, self._answered(sender, asked, body)

    def take(self, reader: Mailbox, most: int, room: int | None) -> list[Letter]:
        """Take the oldest letters that wait for the agent, and after the first none that exceeds `room` characters."""
        self._check_open()
        letters = self._participant(reader.identity).letters
        taken: list[Letter] = []
        size = 0
        while letters and len(taken) < most:
            size += len(letters[0].body)
            if taken and room is not None and size > room:
                break
            taken.append(letters.popleft())
        return taken

    def waits_for(self, identity: str) -> bool:
        """Tell whether a letter lies there that nobody has read."""
        return bool(self._participant(identity).letters)

    async def wait(self, reader: Mailbox, timeout_s: float) -> Letter | Silence:
        """Return the next letter, or why none came.

        Raises:
            MailClosedError: It was closed meanwhile.
        """
        if waiting := self.take(reader, 1, None):
            return waiting[0]
        waiter: asyncio.Future[Letter | Silence] = asyncio.get_running_loop().create_future()
        participant = self._participant(reader.identity)
        participant.waiters.append(waiter)
        try:
            with reader.held():
                await asyncio.wait({waiter}, timeout=min(max(timeout_s, 0.0), LONGEST_WAIT_S))
        except asyncio.CancelledError:
            self._give_back(waiter, participant)
            raise
        return waiter.result() if waiter.done() else self._given_up(waiter, participant)

    def note_change(self) -> None:
        """End all waiting once nobody is left who could write: each run waits, or for others that do."""
        runs = [run for participant in self._participants.values() for run in participant.runs]
        if any(not run.is_held for run in runs):
            return
        for participant in self._participants.values():
            while waiter := participant.waiting():
                waiter.set_result(Silence.ALONE)

    def left(self, mailbox: Mailbox) -> None:
        """Take note that a run has ended."""
        self._participant(mailbox.identity).runs.discard(mailbox)
        self.note_change()

    def _checked(self, sender: Mailbox, recipient: str, body: str) -> _Participant:
        self._check_open()
        if recipient == sender.identity:
            raise MailError("A letter to yourself is not sent.")
        if not body.strip():
            raise MailError("An empty letter is not sent.")
        if len(body.encode("utf-8", "replace")) > LARGEST_BODY_BYTES:
            raise MailError(f"A letter has at most {LARGEST_BODY_BYTES:,} bytes. Write the essence, or name a file.")
        found = self._participants.get(recipient)
        if found is None:
            others = ", ".join(name for name in self._participants if name != sender.identity)
            raise MailError(f"Nobody here is called {recipient!r}. You can write to {others}.")
        return found

    def _answered(self, sender: Mailbox, asked: Letter, body: str) -> Delivery:
        recipient = self._checked(sender, asked.sender, body)
        known = self._replies.get(asked.id)
        if known is None:
            letter = self._written(sender.identity, asked.sender, body, reply_to=asked.id)
            known = self._replies[asked.id] = self._handed(letter, recipient)
        return known

    def _written(
        self, sender: str, recipient: str, body: str, *, reply_to: str | None = None, call_id: str = ""
    ) -> Letter:
        letter = Letter(f"letter-{next(self._numbers)}", sender, recipient, body, reply_to, call_id)
        self._letters[letter.id] = letter
        if len(self._letters) > MOST_KNOWN:
            oldest = next(iter(self._letters))
            del self._letters[oldest]
            self._replies.pop(oldest, None)
        return letter

    def _handed(self, letter: Letter, recipient: _Participant) -> Delivery:
        waiter = recipient.waiting()
        if waiter is None:
            recipient.letters.append(letter)
        else:
            waiter.set_result(letter)
        delivery: Delivery = "queued" if waiter is None else "delivered"
        _told(letter, delivery)
        return delivery

    def _woken(self, letter: Letter) -> Delivery:
        self._wakes += 1
        mailbox = self.enter(letter.recipient, letter.call_id)
        run = asyncio.create_task(self._run(letter, mailbox), name=f"woken {letter.recipient}")
        self._working.add(run)
        run.add_done_callback(self._working.discard)
        _told(letter, "woken")
        return "woken"

    async def _run(self, letter: Letter, mailbox: Mailbox) -> None:
        """Carry out the run that the letter woke, and see to it that the letter is answered."""
        try:
            try:
                said = await self._wake(letter, mailbox)
            except LeaseLostError:
                return  # the run that all of this belongs to finds it out by itself
            except Exception:
                log.exception("a woken run failed", extra={"agent": letter.recipient})
                said = NOT_FINISHED
            if not self._closed:
                self._answered(mailbox, letter, fitting(said.strip()) or NO_FINDINGS)
        finally:
            mailbox.leave()

    def _give_back(self, waiter: asyncio.Future[Letter | Silence], participant: _Participant) -> None:
        """A letter that came in the very moment in which nobody waits any more is the next one's."""
        if not waiter.done():
            self._given_up(waiter, participant)
            return
        came = waiter.result() if waiter.exception() is None else None
        # With a full box it would be the oldest, which makes room.
        if isinstance(came, Letter) and not self._closed and len(participant.letters) < MOST_LETTERS:
            participant.letters.appendleft(came)

    def _given_up(self, waiter: asyncio.Future[Letter | Silence], participant: _Participant) -> Silence:
        waiter.cancel()
        participant.waiters.remove(waiter)
        return Silence.LATE

    def _participant(self, identity: str) -> _Participant:
        found = self._participants.get(identity)
        if found is None:
            raise MailError(f"{identity!r} takes no part in this.")
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise MailClosedError


class Mailbox:
    """What one run of an agent writes and reads letters with. Runs of the same agent share what lies there."""

    def __init__(self, session: MailSession, identity: str, path: str) -> None:
        self._session = session
        self._holds = 0
        self.identity = identity
        self.path = path
        self.received = 0

    @property
    def is_held(self) -> bool:
        """Whether this run waits for others and cannot write."""
        return self._holds > 0

    @contextmanager
    def held(self) -> Iterator[None]:
        """Say that within the block the run does nothing but wait for others."""
        self._holds += 1
        self._session.note_change()
        try:
            yield
        finally:
            self._holds -= 1

    def below(self, call_id: str) -> str:
        """Return how a call of this run is named in the whole work."""
        return f"{self.path}/{call_id}" if self.path else call_id

    def peers(self) -> list[Peer]:
        """Return the others, in order."""
        return self._session.peers(self.identity)

    def send(self, recipient: str, body: str, call_id: str) -> tuple[Letter, Delivery]:
        """Send a letter, or raise MailError."""
        return self._session.send(self, recipient, body, call_id)

    def broadcast(self, body: str) -> dict[str, Delivery]:
        """Send one text to everybody else, or raise MailError."""
        return self._session.broadcast(self, body)

    def reply(self, letter_id: str, body: str) -> tuple[str, Delivery]:
        """Answer a letter and return who gets the answer, or raise MailError."""
        return self._session.reply(self, letter_id, body)

    def take(self, room: int | None = None, most: int = MOST_READ) -> list[Letter]:
        """Take the oldest letters that lie there, about `room` characters of them."""
        taken = self._session.take(self, most, room)
        self.received += len(taken)
        return taken

    async def wait(self, timeout_s: float) -> Letter | Silence:
        """Wait for the next letter, a minute at most."""
        came = await self._session.wait(self, timeout_s)
        self.received += isinstance(came, Letter)
        return came

    @property
    def waits(self) -> bool:
        """Whether a letter lies there that nobody has read."""
        return self._session.waits_for(self.identity)

    def leave(self) -> None:
        """The run has ended."""
        self._session.left(self)


def _told(letter: Letter, delivery: Delivery) -> None:
    """The log alone has a copy that outlives the run, and not of what was written."""
    log.info(
        "a letter between agents",
        extra={"letter": letter.id, "by": letter.sender, "to": letter.recipient, "delivery": delivery},
    )
