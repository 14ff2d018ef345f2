"""What agents of one run write to each other: a letter, how it is delivered, and why one is not taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

from popagent_kit.errors import ConflictError

Delivery = Literal["delivered", "woken", "queued"]

LARGEST_BODY_BYTES: Final = 8_000
LONGEST_WAIT_S: Final = 60.0
NO_FINDINGS: Final = "No additional findings"
NOT_FINISHED: Final = "No answer: the run that was to write it failed."
CUT: Final = "\n[cut: the rest did not fit into a letter]"


class MailError(ConflictError):
    """A letter was not taken, and why; told to the agent that sent it."""

    code = "mail"


class MailClosedError(MailError):
    """This work is over: no letter is taken or waited for any more."""

    code = "mail_closed"


class Silence(Enum):
    """Why a wait ended without a letter."""

    LATE = "none came in time"
    ALONE = "everybody at work waits too, so that none could come"


@dataclass(frozen=True, slots=True)
class Letter:
    """What one agent wrote to another; `reply_to` is the id of the letter that it answers.

    `call_id` is that of the call which sent it, below those of the runs that it was made in; empty where none did.
    """

    id: str
    sender: str
    recipient: str
    body: str
    reply_to: str | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Peer:
    """Somebody who can be written to; `about` is what to ask it for."""

    name: str
    about: str
    at_work: bool


def fitting(text: str) -> str:
    """Return so much of the text as a letter holds."""
    data = text.encode("utf-8", "replace")
    if len(data) <= LARGEST_BODY_BYTES:
        return text
    return data[: LARGEST_BODY_BYTES - len(CUT)].decode("utf-8", "ignore") + CUT
