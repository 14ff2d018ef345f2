"""Web search by the operator's own SearXNG: its JSON API, asked with nothing that names who asks."""

from __future__ import annotations

import asyncio
import logging
from typing import Final
from urllib.parse import urlencode

from popagent_web.addresses import may_be_own, origin_of
from popagent_web.outbound import Answer, NotReachedError, Outbound, OutboundError
from popagent_web.results import NotResultsError, results
from popagent_web.search import Found, NothingListensError, SearchFailedError, Wanted

log = logging.getLogger(__name__)

# It waits for its engines as its own settings say, three to ten seconds mostly.
TIMEOUT_S: Final = 20.0
LOOK_S: Final = 2.0
LARGEST_ANSWER: Final = 2 * 1024 * 1024
_BAD_REQUEST: Final = 400


class SearXNG:
    """Asks one instance for one process."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.where = str(origin_of(self.url)).partition("://")[2]
        self._outbound = Outbound(may_be_own, LARGEST_ANSWER)

    async def search(self, wanted: Wanted) -> Found:
        """Return what was found.

        Raises:
            SearchFailedError: See there.
        """
        asked = {"q": wanted.query, "categories": wanted.category, "pageno": str(wanted.page), "format": "json"}
        if wanted.since is not None:
            asked["time_range"] = wanted.since
        try:
            answer = await self._ask(asked, TIMEOUT_S)
            if not answer.succeeded:
                raise SearchFailedError(self._refusal(answer))
            return self._results(answer)
        except SearchFailedError as error:
            # What was searched for is the person's own affair.
            log.warning("a web search failed", extra={"where": self.where, "reason": error.message})
            raise

    async def look(self) -> None:
        """Return when it is there and gives JSON; no search engine is asked.

        Raises:
            SearchFailedError: See there.
        """
        answer = await self._ask({"format": "json"}, LOOK_S)
        # Without a query it refuses, but only after it has seen that it may give JSON.
        if answer.status == _BAD_REQUEST and answer.content_type == "application/json":
            return
        if not answer.succeeded:
            raise SearchFailedError(self._refusal(answer))
        self._results(answer)

    async def close(self) -> None:
        """Close every connection."""
        await self._outbound.close()

    async def _ask(self, asked: dict[str, str], timeout_s: float) -> Answer:
        try:
            async with asyncio.timeout(timeout_s):
                return await self._outbound.send("GET", f"{self.url}/search?{urlencode(asked)}")
        except TimeoutError as error:
            raise SearchFailedError(f"SearXNG at {self.where} did not answer within {timeout_s:g} s.") from error
        except NotReachedError as error:
            raise NothingListensError(f"SearXNG at {self.where} {error}. Start it, or correct SEARXNG_URL.") from error
        except OutboundError as error:
            raise SearchFailedError(f"SearXNG at {self.where} {error}.") from error

    def _results(self, answer: Answer) -> Found:
        try:
            return results(answer.body)
        except NotResultsError as error:
            raise SearchFailedError(
                f"{self.where} answered {error}: SEARXNG_URL is not the address of a SearXNG."
            ) from error

    def _refusal(self, answer: Answer) -> str:
        if answer.redirects:
            return (
                f"SearXNG at {self.where} answered {answer.status}, a redirect, which is not followed. SEARXNG_URL "
                "must be the address that answers itself."
            )
        what = {
            401: "wants a login (401), and popagent has none. Let it in without one.",
            403: "gives no JSON (403). Add json to search.formats in its settings.yml and start it again.",
            404: "has no search there (404). SEARXNG_URL must be its address without /search.",
            429: "refuses so many requests (429). Set server.limiter to false in its settings.yml, or wait.",
        }.get(answer.status)
        if what is None:
            what = f"failed ({answer.status}). Its own log says why."
        return f"SearXNG at {self.where} {what}"
