"""Whether the web can be searched, for the health of a service; it never decides whether the service is ready."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from popagent_kit.remedies import NOT_SET_UP
from popagent_web.search import NothingListensError, SearchFailedError
from popagent_web.searxng import SearXNG

# Health is asked every second or so by programs; the instance shall not notice.
WELL_FOR_S: Final = 60.0
UNWELL_FOR_S: Final = 10.0
# The whole answer about health must be there within a second.
WAIT_S: Final = 0.3


class SearchCheck:
    """Looks now and then, and tells what it saw last."""

    def __init__(self, searxng: SearXNG, *, is_given: bool) -> None:
        self._searxng = searxng
        self._is_given = is_given
        self._trouble = f"SearXNG at {searxng.where} has not answered yet."
        self._fresh_until = 0.0
        self._look: asyncio.Task[None] | None = None

    async def __call__(self) -> str:
        """Say where searches go.

        Raises:
            SearchFailedError: The web cannot be searched; where nobody set it up, the message begins with NOT_SET_UP.
        """
        if time.monotonic() >= self._fresh_until:
            if self._look is None or self._look.done():
                self._look = asyncio.create_task(self._looked(), name="look for SearXNG")
            await asyncio.wait({self._look}, timeout=WAIT_S)
            if self._look.done():
                self._look.result()  # a defect of ours is told as one
        if self._trouble:
            raise SearchFailedError(self._trouble)
        return f"SearXNG at {self._searxng.where}"

    async def close(self) -> None:
        """End a look that is under way."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait({self._look})

    async def _looked(self) -> None:
        try:
            self._trouble = await trouble(self._searxng, is_given=self._is_given)
        finally:
            self._fresh_until = time.monotonic() + (UNWELL_FOR_S if self._trouble else WELL_FOR_S)


async def trouble(searxng: SearXNG, *, is_given: bool) -> str:
    """Look, and say why the web cannot be searched; nothing when it can."""
    try:
        await searxng.look()
    except NothingListensError as error:
        return error.message if is_given else f"{NOT_SET_UP}: no SearXNG at {searxng.where}"
    except SearchFailedError as error:
        return error.message
    return ""
