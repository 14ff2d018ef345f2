"""A turn outlives whatever happens to the page that watches it: reloads, lost networks, killed processes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import asyncpg
import pytest
from playwright.async_api import Page, expect

from popagent_testing.model_replies import Reply
from tests.browser.browser import Recorder
from tests.browser.chats import (
    answers,
    composer,
    ended,
    is_whole_so_far,
    numbered,
    open_chat,
    say,
    slowly,
    wait_for_words,
    written,
)
from tests.browser.conftest import NewPage
from tests.suite import Suite

pytestmark = pytest.mark.timeout(180)

# What Chromium says on the console when a server is gone.
GONE = ("ERR_", "status of 50")


async def test_twenty_reloads_at_random_moments_lose_and_double_nothing(suite: Suite, page: Page) -> None:
    suite.model.script(slowly("reload", count=1_500, delay_s=0.012))
    chance = random.Random(20)
    await open_chat(page)
    await say(page, "reload me often")

    before = 0
    for _ in range(20):
        await page.wait_for_timeout(chance.uniform(0, 400))
        await page.reload()
        await wait_for_words(page, min(before + 1, 1_500))
        words = await written(page)
        assert is_whole_so_far(words)
        assert len(words) >= before
        before = len(words)

    await ended(page, timeout_ms=60_000)
    assert await written(page) == numbered(1_500).split()
    await expect(answers(page)).to_have_count(1)


async def test_a_killed_gateway_is_a_pause_in_the_text(suite: Suite, page: Page, recorder: Recorder) -> None:
    recorder.forgive(*GONE)
    suite.model.script(slowly("gateway", count=700))
    await open_chat(page)
    await say(page, "watch the gateway die")
    await wait_for_words(page, 50)

    await suite.restart("gateway")

    await ended(page, timeout_ms=60_000)
    assert await written(page) == numbered(700).split()
    await expect(page.get_by_text("Connection lost")).to_have_count(0)


async def test_a_killed_chat_service_interrupts_the_answer_in_words(
    suite: Suite, page: Page, recorder: Recorder
) -> None:
    recorder.forgive(*GONE)
    suite.model.script(slowly("chat service", count=3_000))
    await open_chat(page)
    await say(page, "watch the chat service die")
    await wait_for_words(page, 50)

    await suite.restart("chat")

    await ended(page, "Interrupted", timeout_ms=40_000)
    assert is_whole_so_far(await written(page))
    await expect(answers(page).last.locator(".reason.is-wait")).to_contain_text("interrupted")
    suite.model.reset()
    suite.model.set_default(Reply(text="here again"))
    await answers(page).last.get_by_role("button", name="Continue").click()
    await expect(page.get_by_text("here again")).to_be_visible(timeout=20_000)
    await ended(page)


@dataclass
class Cable:
    """A TCP relay to the gateway: unplugged, open connections die and new ones are refused; frozen, no byte moves."""

    target: int
    plugged: bool = True
    flows: asyncio.Event = field(default_factory=asyncio.Event)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.plugged:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        ends = {writer, far_writer}
        self.writers |= ends
        await asyncio.gather(self.pour(reader, far_writer), self.pour(far_reader, writer))
        self.writers -= ends

    async def pour(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self.flows.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    def unplug(self) -> None:
        self.plugged = False
        for writer in self.writers:
            writer.transport.abort()


@asynccontextmanager
async def cabled(suite: Suite, new_page: NewPage) -> AsyncIterator[tuple[Cable, Page]]:
    """A page with a new chat at the other end of a cable."""
    cable = Cable(suite.port)
    cable.flows.set()
    server = await asyncio.start_server(cable.relay, "127.0.0.1", 0)
    try:
        page = await new_page(base_url=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await open_chat(page)
        yield cable, page
    finally:
        cable.unplug()
        server.close()


async def test_a_lost_network_is_said_and_the_answer_is_joined_again(
    suite: Suite, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive(*GONE)
    suite.model.script(slowly("cable", count=900))
    async with cabled(suite, new_page) as (cable, page):
        await say(page, "pull the cable")
        await wait_for_words(page, 50)

        cable.unplug()
        await expect(page.get_by_text("Connection lost").first).to_be_visible()
        # What is written meanwhile waits; it cannot be sent while a turn runs.
        await composer(page).fill("for later")
        cable.plugged = True

        await ended(page, timeout_ms=60_000)
        assert await written(page) == numbered(900).split()
        await expect(page.get_by_text("Connection lost")).to_have_count(0)
        await expect(composer(page)).to_have_value("for later")


async def test_words_sent_into_a_dead_network_are_sent_once_or_given_back(
    suite: Suite, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive(*GONE)
    suite.model.set_default(Reply(text="an answer"))
    async with cabled(suite, new_page) as (cable, page):
        await say(page, "before the cut")
        await ended(page)

        # The page has also heard that the turn is over: it offers to send.
        await expect(page.get_by_label("Running")).to_have_count(0)
        await composer(page).fill("into the dark")
        await expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()
        cable.unplug()
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Connection lost").first).to_be_visible()
        cable.plugged = True

        await expect(page.get_by_text("Nothing was sent")).to_be_visible(timeout=20_000)
        await expect(composer(page)).to_have_value("into the dark")
        await page.keyboard.press("Enter")
        await expect(answers(page)).to_have_count(2)
        await ended(page)
        await expect(page.get_by_role("article", name="You")).to_have_count(2)


async def test_the_first_words_of_a_chat_are_given_back_when_they_did_not_arrive(
    suite: Suite, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive(*GONE, "status of 404")
    suite.model.set_default(Reply(text="an answer"))
    async with cabled(suite, new_page) as (cable, page):
        cable.unplug()
        await composer(page).fill("my very first words")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("Connection lost").first).to_be_visible()
        cable.plugged = True

        await expect(page.get_by_text("Nothing was sent")).to_be_visible(timeout=20_000)
        await expect(composer(page)).to_have_value("my very first words")
        await expect(page.get_by_role("article")).to_have_count(0)
        await page.keyboard.press("Enter")
        await ended(page)
        await expect(page.get_by_role("article", name="You")).to_have_count(1)


async def test_refused_words_come_back_once(suite: Suite, page: Page, recorder: Recorder) -> None:
    recorder.forgive("status of 503")
    await open_chat(page)
    session = await say(page, "before the refusal")
    await ended(page)
    answer = '{"error": "The server is restarting.", "code": "unavailable", "field": null}'
    await page.route("**/api/chat", lambda route: route.fulfill(status=503, body=answer))

    await composer(page).fill("hello")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").get_by_text("The server is restarting.")).to_be_visible()
    await composer(page).fill("hello world")
    await page.get_by_role("link", name="New chat").click()
    await expect(composer(page)).to_have_value("")
    await page.go_back()

    await page.wait_for_url(f"**/chat/{session}")
    await expect(composer(page)).to_have_value("hello world")


async def test_a_full_disk_is_said_and_the_words_stay(suite: Suite, page: Page, recorder: Recorder) -> None:
    recorder.forgive("status of 503")
    await open_chat(page)
    session = await say(page, "while there is room")
    await ended(page)
    password = (suite.home / "credentials/postgres-application").read_text(encoding="utf-8").strip()
    port = suite.program("postgres").port
    database = await asyncpg.connect(
        host="127.0.0.1", port=port, user="popagent", password=password, database="popagent"
    )
    await database.execute(
        "create function chat.full_disk() returns trigger language plpgsql as"
        " $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$;"
        "create trigger full_disk before insert on chat.messages for each row"
        f" when (new.thread_id = '{session}') execute function chat.full_disk()"
    )
    try:
        await composer(page).fill("no room for this")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").get_by_text("is full. Nothing was stored")).to_be_visible()
        await expect(composer(page)).to_have_value("no room for this")
    finally:
        await database.execute("drop function chat.full_disk() cascade")
        await database.close()

    await page.keyboard.press("Enter")
    await expect(answers(page)).to_have_count(2)
    await ended(page)


@pytest.mark.full
async def test_a_network_that_falls_silent_is_noticed_as_after_a_sleep(
    suite: Suite, new_page: NewPage, recorder: Recorder
) -> None:
    recorder.forgive(*GONE)
    suite.model.script(slowly("silent", count=3_500))
    async with cabled(suite, new_page) as (cable, page):
        await say(page, "fall silent")
        await wait_for_words(page, 50)

        # Frozen, not closed: no error ever comes from the socket.
        cable.flows.clear()
        await expect(page.get_by_text("Connection lost").first).to_be_visible(timeout=40_000)
        cable.unplug()
        cable.flows.set()
        cable.plugged = True

        await ended(page, timeout_ms=90_000)
        assert await written(page) == numbered(3_500).split()
