"""Letters between agents of a task: who waits gets them at once, who is idle is woken, who works finds them later.

A session lives as long as its task is carried out, in that process and nowhere else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from popagent_agent.ports import LeaseLostError
from popagent_kit.errors import AppError
from popagent_kit.ids import new_id

log = logging.getLogger(__name__)

Delivery = Literal["delivered", "woken", "queued"]

MOST_LETTERS: Final = 100
MOST_TOLD: Final = 8
LONGEST_BODY: Final = 8_000
LONGEST_WAIT_S: Final = 60.0
# So many runs of woken agents a task may cost.
MOST_WAKES: Final = 16
# How many letters stay known, so that they can be answered.
MOST_KNOWN: Final = 1_000
NO_FINDINGS: Final = "No additional findings"
NOT_FINISHED: Final = "No answer: the run that was to write it did not finish."


class MailError(AppError):
    """A letter was not taken, and why; told to the agent that sent it."""

    code = "mail"
    http_status = 409


class MailClosedError(MailError):
    """The task is over: no letter is taken or waited for any more."""

    code = "mail_closed"


@dataclass(frozen=True, slots=True)
class Letter:
    """What one agent wrote to another. `reply_to` is the id of the letter that it answers."""

    sender: str
    recipient: str
    body: str
    reply_to: str | None = None
    id: str = field(default_factory=new_id)


Wake = Callable[[Letter], Awaitable[str]]
"""Carries out the recipient's own run for the letter and returns what it says last."""
Told = Callable[[Letter, Delivery], None]
"""Hears of every letter that was taken."""


def _nobody(letter: Letter, delivery: Delivery) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class _Participant:
    runs: int = 0
    woken: bool = False
    letters: deque[Letter] = field(default_factory=lambda: deque(maxlen=MOST_LETTERS))
    waiters: deque[asyncio.Future[Letter]] = field(default_factory=deque)

    @property
    def idle(self) -> bool:
        return self.runs == 0 and not self.woken

    def waiting(self) -> asyncio.Future[Letter] | None:
        """Take the one that has waited longest, if somebody waits."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.done():
                return waiter
        return None


class MailSession:
    """The letters of one task among `identities`; what an agent does with them goes through its `mailbox`."""

    def __init__(self, identities: Iterable[str], wake: Wake, told: Told = _nobody) -> None:
        self._participants = {identity: _Participant() for identity in identities}
        self._wake = wake
        self._told = told
        self._letters: dict[str, Letter] = {}
        self._replies: dict[str, Delivery] = {}
        self._wakes = 0
        self._running: set[asyncio.Task[None]] = set()
        self._closed = False

    def mailbox(self, identity: str) -> Mailbox:
        """Return what the agent `identity` uses; nobody else can write in its name."""
        self._participant(identity)
        return Mailbox(self, identity)

    @contextmanager
    def active(self, identity: str) -> Iterator[None]:
        """Say that a run of the agent goes on within the block: letters to it wait for its next step."""
        participant = self._participant(identity)
        participant.runs += 1
        try:
            yield
        finally:
            participant.runs -= 1

    async def settle(self) -> None:
        """Return when no woken run goes on; one may wake another."""
        while self._running:
            await asyncio.wait(tuple(self._running))

    async def close(self) -> None:
        """End it: waiters are refused, letters are gone, woken runs are cancelled and have ended."""
        self._closed = True
        for participant in self._participants.values():
            participant.letters.clear()
            while waiter := participant.waiting():
                waiter.set_exception(MailClosedError())
        self._letters.clear()
        for run in tuple(self._running):
            run.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def peers(self, identity: str) -> dict[str, Literal["idle", "active"]]:
        """Return the others, in order, and whether a run of theirs goes on."""
        self._check_open()
        return {
            name: "idle" if participant.idle else "active"
            for name, participant in self._participants.items()
            if name != identity
        }

    def send(self, letter: Letter) -> Delivery:
        """Take a letter, and say what became of it.

        Raises:
            MailError: It is not taken; nothing is kept of it.
        """
        recipient = self._checked(letter)
        if letter.reply_to is not None and (known := self._replies.get(letter.reply_to)) is not None:
            return known
        delivery = self._delivered(letter, recipient)
        if letter.reply_to is not None:
            self._replies[letter.reply_to] = delivery
        self._remember(letter)
        self._told(letter, delivery)
        return delivery

    def broadcast(self, sender: str, body: str) -> dict[str, Delivery]:
        """Send one text to everybody else; who is idle is not woken by it, and finds it later."""
        letters = [Letter(sender, name, body) for name in self._participants if name != sender]
        recipients = [self._checked(letter) for letter in letters]
        taken: dict[str, Delivery] = {}
        for letter, recipient in zip(letters, recipients, strict=True):
            taken[letter.recipient] = _handed(letter, recipient)
            self._remember(letter)
            self._told(letter, taken[letter.recipient])
        return taken

    def answered(self, identity: str, letter_id: str) -> Letter:
        """Return the letter that an answer of `identity` is about.

        Raises:
            MailError: No such letter was written to it.
        """
        self._check_open()
        letter = self._letters.get(letter_id)
        if letter is None or letter.recipient != identity:
            raise MailError(f"No letter with the id {letter_id!r} was written to you.")
        return letter

    def take(self, identity: str, most: int) -> list[Letter]:
        """Take the oldest letters that wait for the agent."""
        self._check_open()
        letters = self._participant(identity).letters
        return [letters.popleft() for _ in range(min(most, len(letters)))]

    async def wait(self, identity: str, timeout_s: float) -> Letter | None:
        """Return the next letter, None when none came in time.

        Raises:
            MailClosedError: The session ended.
        """
        if waiting := self.take(identity, 1):
            return waiting[0]
        waiter: asyncio.Future[Letter] = asyncio.get_running_loop().create_future()
        participant = self._participant(identity)
        participant.waiters.append(waiter)
        try:
            async with asyncio.timeout(min(max(timeout_s, 0.0), LONGEST_WAIT_S)):
                return await waiter
        except TimeoutError:
            return None
        except asyncio.CancelledError:
            # It came in the very moment in which nobody waits any more: the next one finds it.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                participant.letters.appendleft(waiter.result())
            raise

    def _checked(self, letter: Letter) -> _Participant:
        self._check_open()
        if letter.sender not in self._participants:
            raise MailError(f"{letter.sender!r} takes no part in this task.")
        if letter.recipient == letter.sender:
            raise MailError("A letter to oneself is not sent.")
        if not letter.body.strip():
            raise MailError("An empty letter is not sent.")
        if len(letter.body) > LONGEST_BODY:
            raise MailError(f"A letter has at most {LONGEST_BODY:,} characters.")
        return self._participant(letter.recipient)

    def _delivered(self, letter: Letter, recipient: _Participant) -> Delivery:
        # An answer wakes nobody: two who thank each other would never end.
        if letter.reply_to is not None or not recipient.idle or self._wakes >= MOST_WAKES:
            return _handed(letter, recipient)
        self._wakes += 1
        recipient.woken = True
        run = asyncio.create_task(self._run(letter, recipient), name=f"woken {letter.recipient}")
        self._running.add(run)
        run.add_done_callback(self._running.discard)
        return "woken"

    async def _run(self, letter: Letter, recipient: _Participant) -> None:
        """Carry out the run that the letter woke, and see to it that it is answered."""
        try:
            with self.active(letter.recipient):
                recipient.woken = False
                said = await self._wake(letter)
        except LeaseLostError:
            return  # the run of the task itself finds that out
        except Exception:
            log.exception("a woken run failed", extra={"agent": letter.recipient})
            said = NOT_FINISHED
        finally:
            recipient.woken = False
        if not self._closed:
            body = said.strip()[:LONGEST_BODY] or NO_FINDINGS
            self.send(Letter(letter.recipient, letter.sender, body, reply_to=letter.id))

    def _remember(self, letter: Letter) -> None:
        self._letters[letter.id] = letter
        if len(self._letters) > MOST_KNOWN:
            oldest = next(iter(self._letters))
            del self._letters[oldest]
            self._replies.pop(oldest, None)

    def _participant(self, identity: str) -> _Participant:
        found = self._participants.get(identity)
        if found is None:
            raise MailError(f"{identity!r} takes no part in this task. Others are {', '.join(self._participants)}.")
        return found

    def _check_open(self) -> None:
        if self._closed:
            raise MailClosedError


class Mailbox:
    """The letters of one agent; whoever holds it writes as that agent and as no other."""

    def __init__(self, session: MailSession, identity: str) -> None:
        self._session = session
        self.identity = identity

    def peers(self) -> dict[str, Literal["idle", "active"]]:
        """Return the others of this task, and whether a run of theirs goes on."""
        return self._session.peers(self.identity)

    def send(self, recipient: str, body: str, *, sender: str | None = None) -> tuple[str, Delivery]:
        """Send a letter; returns its id and what became of it.

        Raises:
            MailError: It is not taken, since `sender` is somebody else, for example.
        """
        self._check_sender(sender)
        letter = Letter(self.identity, recipient, body)
        return letter.id, self._session.send(letter)

    def broadcast(self, body: str, *, sender: str | None = None) -> dict[str, Delivery]:
        """Send one text to everybody else."""
        self._check_sender(sender)
        return self._session.broadcast(self.identity, body)

    def reply(self, letter_id: str, body: str, *, sender: str | None = None) -> Delivery:
        """Answer a letter; a second answer to it changes nothing."""
        self._check_sender(sender)
        letter = self._session.answered(self.identity, letter_id)
        return self._session.send(Letter(self.identity, letter.sender, body, reply_to=letter.id))

    def take(self, most: int = MOST_TOLD) -> list[Letter]:
        """Take the oldest letters that wait, for the next step or because the agent asks."""
        return self._session.take(self.identity, most)

    async def wait(self, timeout_s: float) -> Letter | None:
        """Wait for the next letter, a minute at most."""
        return await self._session.wait(self.identity, timeout_s)

    def _check_sender(self, sender: str | None) -> None:
        if sender not in (None, self.identity):
            raise MailError(f"You write as {self.identity}, and not as {sender!r}.")


def _handed(letter: Letter, recipient: _Participant) -> Delivery:
    waiter = recipient.waiting()
    if waiter is not None:
        waiter.set_result(letter)
        return "delivered"
    recipient.letters.append(letter)
    return "queued"
