"""Letters between agents: none lost, none twice, nobody spoken for, no end without an answer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from popagent_agent.letters import (
    CUT,
    LARGEST_BODY_BYTES,
    NO_FINDINGS,
    NOT_FINISHED,
    Letter,
    MailClosedError,
    MailError,
    Silence,
)
from popagent_agent.mailbox import MOST_KNOWN, MOST_LETTERS, MOST_WAKES, Mailbox, MailSession
from popagent_agent.ports import LeaseLostError

NAMES = {"lead": "Leads.", "scout": "Looks.", "smith": "Makes."}


class Mail(MailSession):
    """A session whose woken agents say this; it remembers what woke them."""

    def __init__(self, said: str | BaseException = "Found it.") -> None:
        super().__init__(NAMES, self.carry_out)
        self.said = said
        self.woke: list[Letter] = []

    async def carry_out(self, letter: Letter, mailbox: Mailbox) -> str:
        assert mailbox.identity == letter.recipient
        self.woke.append(letter)
        await asyncio.sleep(0)
        if isinstance(self.said, BaseException):
            raise self.said
        return self.said


async def test_who_waits_gets_the_letter_at_once() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    waiting = asyncio.create_task(scout.wait(5))
    await asyncio.sleep(0)

    letter, delivery = lead.send("scout", "Where is it?", "c1")
    got = await waiting

    assert (delivery, got) == ("delivered", letter)
    assert (letter.sender, letter.body, letter.call_id) == ("lead", "Where is it?", "c1")
    assert (mail.woke, scout.received) == ([], 1)


async def test_who_is_idle_is_woken_in_a_run_of_its_own_and_answers_as_itself() -> None:
    mail = Mail("In the north.")
    lead = mail.enter("lead")

    letter, delivery = lead.send("scout", "Where is it?", "c1")
    at_work = {peer.name: peer.at_work for peer in lead.peers()}
    await mail.settle()

    (answer,) = lead.take()
    assert (delivery, mail.woke, at_work) == ("woken", [letter], {"scout": True, "smith": False})
    assert (answer.sender, answer.body, answer.reply_to) == ("scout", "In the north.", letter.id)
    assert not any(peer.at_work for peer in lead.peers())


@pytest.mark.parametrize(
    ("said", "answer"), [("", NO_FINDINGS), ("  \n", NO_FINDINGS), (RuntimeError("broken"), NOT_FINISHED)]
)
async def test_a_woken_run_that_says_nothing_or_breaks_is_answered_for(said: Any, answer: str) -> None:
    mail = Mail(said)
    lead = mail.enter("lead")

    lead.send("scout", "Where is it?", "c1")
    await mail.settle()

    assert [letter.body for letter in lead.take()] == [answer]


async def test_a_woken_run_that_answered_by_itself_is_not_answered_for_again() -> None:
    async def wake(letter: Letter, mailbox: Mailbox) -> str:
        assert mailbox.reply(letter.id, "Myself.") == ("lead", "queued")
        return "And once more."

    mail = MailSession(NAMES, wake)
    lead = mail.enter("lead")
    lead.send("scout", "Where is it?", "c1")
    await mail.settle()

    assert [letter.body for letter in lead.take()] == ["Myself."]


async def test_a_long_answer_is_cut_to_what_a_letter_holds() -> None:
    mail = Mail("ä" * LARGEST_BODY_BYTES)
    lead = mail.enter("lead")

    lead.send("scout", "Where is it?", "c1")
    await mail.settle()

    (answer,) = lead.take()
    assert len(answer.body.encode()) <= LARGEST_BODY_BYTES
    assert answer.body.endswith(f"ää{CUT}")


async def test_an_answer_waits_for_a_run_that_a_thousand_letters_have_passed() -> None:
    gate = asyncio.Event()

    async def wake(_: Letter, __: Mailbox) -> str:
        await gate.wait()
        return "At last."

    mail = MailSession(NAMES, wake)
    lead, smith = mail.enter("lead"), mail.enter("smith")
    asked, _ = lead.send("scout", "Where is it?", "c1")
    for _ in range(MOST_KNOWN):
        lead.send("smith", "Forge.", "c2")
    gate.set()
    await mail.settle()

    assert [(letter.body, letter.reply_to) for letter in lead.take()] == [("At last.", asked.id)]
    assert len(smith.take(most=MOST_KNOWN)) == MOST_LETTERS


async def test_who_works_finds_letters_at_its_next_step_eight_at_a_time_the_oldest_first() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")

    deliveries = {lead.send("scout", f"{number}", "c1")[1] for number in range(10)}
    first, then = scout.take(), scout.take()

    assert deliveries == {"queued"}
    assert [letter.body for letter in [*first, *then]] == [str(number) for number in range(10)]
    assert (len(first), mail.woke) == (8, [])


async def test_as_many_letters_are_read_as_there_is_room_for_and_one_at_least() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    for size in (50, 60, 40):
        lead.send("scout", "x" * size, "c1")

    assert [[len(letter.body) for letter in scout.take(room=100)] for _ in range(2)] == [[50], [60, 40]]


async def test_an_answer_wakes_nobody() -> None:
    mail = Mail()
    lead = mail.enter("lead")
    letter, _ = lead.send("scout", "Where is it?", "c1")
    await mail.settle()

    (answer,) = lead.take()
    again = lead.reply(answer.id, "Thanks.")

    assert (again, mail.woke) == (("scout", "queued"), [letter])


async def test_a_text_to_all_wakes_nobody() -> None:
    mail = Mail()

    assert mail.enter("lead").broadcast("Stop digging.") == {"scout": "queued", "smith": "queued"}
    assert mail.woke == []
    assert [letter.body for letter in mail.enter("smith").take()] == ["Stop digging."]


async def test_what_is_no_letter_is_refused_and_nothing_of_it_is_kept() -> None:
    mail = Mail()
    lead, smith = mail.enter("lead"), mail.enter("smith")
    letter, _ = lead.send("smith", "Forge.", "c1")
    smith.take()
    for attempt, why in (
        (lambda: lead.send("lead", "Hello, me.", "c"), "yourself"),
        (lambda: lead.send("nobody", "Hello?", "c"), "You can write to scout, smith."),
        (lambda: lead.send("smith", "  ", "c"), "empty"),
        (lambda: lead.send("smith", "ä" * 4_001, "c"), "8,000 bytes"),
        (lambda: lead.broadcast(""), "empty"),
        (lambda: lead.reply(letter.id, "I answer my own."), "was written to you"),
        (lambda: smith.reply("letter-99", "I know."), "was written to you"),
        (lambda: smith.reply(letter.id, ""), "empty"),
        (lambda: mail.enter("stranger"), "takes no part"),
    ):
        with pytest.raises(MailError, match=why):
            attempt()

    assert [box.take() for box in (lead, smith)] == [[], []]
    assert mail.woke == []


async def test_the_oldest_letters_make_room() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    for number in range(MOST_LETTERS + 3):
        lead.send("scout", str(number), "c1")

    assert [letter.body for letter in scout.take(most=200)] == [str(n) for n in range(3, MOST_LETTERS + 3)]


async def test_a_run_pays_for_a_bounded_number_of_woken_ones() -> None:
    mail = Mail()
    lead = mail.enter("lead")
    for _ in range(MOST_WAKES):
        assert lead.send("scout", "And now?", "c1")[1] == "woken"
        await mail.settle()

    with pytest.raises(MailError, match="Go on without it"):
        lead.send("scout", "And now?", "c1")
    assert len(lead.take(most=99)) == len(mail.woke) == MOST_WAKES


async def test_two_that_write_to_each_other_for_ever_are_ended_by_that_bound() -> None:
    woken: list[str] = []
    refused: list[str] = []

    async def wake(letter: Letter, mailbox: Mailbox) -> str:
        woken.append(mailbox.identity)
        try:
            mailbox.send({"scout": "smith", "smith": "scout"}[mailbox.identity], letter.body, "c")
        except MailError as error:
            refused.append(error.message)
        return letter.body

    mail = MailSession(NAMES, wake)
    lead = mail.enter("lead")
    lead.send("scout", "Pass it on.", "c1")
    await mail.settle()

    assert len(lead.take()) == 1
    assert (len(woken), len(refused)) == (MOST_WAKES, 1)


async def test_a_run_is_named_by_the_calls_that_led_to_it() -> None:
    paths: list[str] = []

    async def wake(letter: Letter, mailbox: Mailbox) -> str:
        paths.append(mailbox.path)
        if mailbox.identity == "scout":
            mailbox.send("smith", "Forge.", "c7")
        return ""

    mail = MailSession(NAMES, wake)
    mail.enter("lead").send("scout", "Where is it?", "c1")
    await mail.settle()

    assert paths == ["c1", "c1/c7"]


async def test_a_wait_ends_in_its_time() -> None:
    mail = Mail()
    mail.enter("lead")

    assert await mail.enter("scout").wait(0.01) is Silence.LATE


async def test_nobody_waits_for_those_who_wait_too() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")

    async with asyncio.timeout(5):
        first = asyncio.create_task(lead.wait(60))
        await asyncio.sleep(0)
        assert not first.done()
        assert [await scout.wait(60), await first] == [Silence.ALONE] * 2
        with lead.held():  # it waits for what it gave to the scout
            assert await scout.wait(60) is Silence.ALONE
        scout.leave()
        assert await lead.wait(60) is Silence.ALONE


async def test_who_waits_for_a_run_that_ends_without_a_word_waits_no_longer() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    waiting = asyncio.create_task(lead.wait(60))
    await asyncio.sleep(0)

    scout.leave()

    async with asyncio.timeout(5):
        assert await waiting is Silence.ALONE


async def test_the_answer_of_a_woken_run_comes_before_its_end() -> None:
    mail = Mail("Here.")
    lead = mail.enter("lead")
    lead.send("scout", "Where is it?", "c1")

    async with asyncio.timeout(5):
        came = await lead.wait(60)

    assert isinstance(came, Letter)
    assert came.body == "Here."


async def test_a_wait_that_is_cut_off_loses_nothing() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    cut = asyncio.create_task(scout.wait(5))
    await asyncio.sleep(0)
    lead.send("scout", "Kept.", "c1")
    cut.cancel()
    await asyncio.gather(cut, return_exceptions=True)

    kept = await scout.wait(0)

    assert isinstance(kept, Letter)
    assert kept.body == "Kept."


async def test_a_letter_that_comes_in_the_moment_in_which_the_wait_ends_is_not_lost() -> None:
    mail = Mail()
    lead, scout = mail.enter("lead"), mail.enter("scout")
    waiting = asyncio.create_task(scout.wait(0.01))
    await asyncio.sleep(0)
    time.sleep(0.03)  # the end of the wait is due: the letter and it come in the same round of the event loop
    asyncio.get_running_loop().call_soon(lead.send, "scout", "Kept.", "c1")

    came = await waiting

    assert [letter.body for letter in ([came] if isinstance(came, Letter) else scout.take())] == ["Kept."]


async def test_the_end_refuses_who_waits_ends_who_was_woken_and_takes_nothing_more() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def wake(_: Letter, __: Mailbox) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    mail = MailSession(NAMES, wake)
    lead, scout = mail.enter("lead"), mail.enter("scout")
    asked, _ = lead.send("smith", "Forge.", "c1")
    lead.send("scout", "Unread.", "c2")
    scout.take()
    waiting = asyncio.create_task(scout.wait(5))
    await began.wait()

    await mail.close()

    assert ended.is_set()
    for attempt in (
        lambda: lead.send("scout", "Hello?", "c3"),
        lambda: lead.broadcast("Hello?"),
        lambda: scout.reply(asked.id, "Hello?"),
        lead.take,
        lead.peers,
        lambda: mail.enter("scout"),
    ):
        with pytest.raises(MailClosedError):
            attempt()
    with pytest.raises(MailClosedError):
        await waiting
    await mail.settle()


async def test_a_woken_run_whose_work_was_lost_says_nothing() -> None:
    mail = Mail(LeaseLostError("gone"))
    lead = mail.enter("lead")
    lead.send("scout", "Where is it?", "c1")
    await mail.settle()

    assert lead.take() == []


async def test_the_log_has_a_copy_of_every_letter_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    mail = Mail("The answer.")
    mail.enter("lead").send("scout", "The question.", "c1")
    await mail.settle()

    told = [(r.letter, r.by, r.to, r.delivery) for r in caplog.records if hasattr(r, "letter")]
    assert told == [("letter-1", "lead", "scout", "woken"), ("letter-2", "scout", "lead", "queued")]
    assert not any("question" in record.getMessage() or "answer" in record.getMessage() for record in caplog.records)
