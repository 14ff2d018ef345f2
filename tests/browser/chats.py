"""What a person does in a chat, for the stories of this folder: say, wait for the stamp, read what stands there."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Locator, Page, expect

from popagent_kit.ids import new_id
from popagent_testing.model_replies import Reply

WORDS: Final = 600


def numbered(count: int = WORDS) -> str:
    """Return a text whose every part tells whether something before it is missing."""
    return " ".join(f"w{number}" for number in range(count))


def slowly(when: str, *, count: int = WORDS, delay_s: float = 0.01) -> Reply:
    """Return an answer that a person can interfere with, to questions with the word `when`."""
    return Reply(text=numbered(count), token_delay_s=delay_s, when=when, times=0)


async def open_chat(page: Page, session: str | None = None) -> None:
    """Open a chat by its address, a new one without an id."""
    await page.goto(f"/chat/{session or 'new'}")
    await expect(composer(page)).to_be_visible()


async def say(page: Page, text: str) -> str:
    """Send a message and return the id of the chat once it was taken."""
    await composer(page).fill(text)
    await page.get_by_role("button", name="Send", exact=True).click()
    await page.wait_for_url(lambda url: "/chat/" in url and not url.endswith("/new"))
    return page.url.rsplit("/", 1)[-1].split("#")[0].split("?")[0]


def chats(page: Page) -> Locator:
    """The list of chats."""
    return page.get_by_role("complementary", name="Chats")


def composer(page: Page) -> Locator:
    """Where one writes."""
    return page.get_by_role("textbox", name="Write to the orchestrator")


def answers(page: Page) -> Locator:
    """Every answer that is shown."""
    return page.get_by_role("article", name="Orchestrator")


def stamp(page: Page, words: str) -> Locator:
    """The end of the last answer, if it ended so."""
    return answers(page).last.locator("footer.stamp").get_by_text(words, exact=True)


async def ended(page: Page, words: str = "Done", timeout_ms: float = 30_000) -> None:
    """Wait until the last answer ended in these words."""
    await expect(stamp(page, words)).to_be_visible(timeout=timeout_ms)


async def written(page: Page) -> list[str]:
    """Return the words of the last answer as far as they are painted."""
    prose = answers(page).last.locator(".prose")
    return (await prose.last.inner_text()).split() if await prose.count() else []


async def wait_for_words(page: Page, count: int) -> None:
    """Wait until the last answer shows at least so many words."""
    await page.wait_for_function(
        "count => (Array.from(document.querySelectorAll('.answer')).at(-1)?.querySelector('.prose')?.innerText ?? '')"
        ".split(/\\s+/).length >= count",
        arg=count,
    )


def is_whole_so_far(words: list[str]) -> bool:
    """Tell whether nothing is missing, doubled or out of order in a `numbered` text.

    Of its last word the end may be held back: it could be where a secret begins.
    """
    expected = [f"w{number}" for number in range(len(words))]
    return words[:-1] == expected[:-1] and all(map(str.startswith, expected[-1:], words[-1:]))


def fresh(name: str) -> str:
    """Return a title that no other test uses."""
    return f"{name} {new_id()[-6:]}"
