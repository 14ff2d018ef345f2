"""A scripted SearXNG on loopback: `async with SearchServer() as server`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson

from popagent_testing.loopback import LoopbackServer


def http(body: bytes | str, status: str = "200 OK", kind: str = "text/html", headers: str = "") -> bytes:
    """Return a whole answer; each of `headers` ends its line."""
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data


def found(*results: dict[str, Any], **others: Any) -> bytes:
    """Return an answer as SearXNG gives it, with these results."""
    said = {"query": "", "number_of_results": 0, "results": results, "answers": [], "corrections": []}
    said |= {"infoboxes": [], "suggestions": [], "unresponsive_engines": [], **others}
    return http(orjson.dumps(said), kind="application/json")


def page(number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return one result."""
    return {"url": f"https://example.org/{number}", "title": f"Title {number}", "content": f"Text {number}.", **fields}


@dataclass
class SearchServer(LoopbackServer):
    """Answers every search with `answer`, byte for byte; b"" hangs up, None never answers. `asked` are the searches.

    Like SearXNG it refuses what names no query, and everything while `gives_json` is off.
    """

    answer: bytes | None = field(default_factory=lambda: found(page()))
    gives_json: bool = True
    asked: list[dict[str, str]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    looks: int = 0

    async def answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read the head, and answer what it asks for."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:  # only looked whether somebody listens
            return
        self.heads.append(head)
        answer = self._answer_to(head.split()[1])
        if answer is None:
            await asyncio.Event().wait()
            return
        writer.write(answer)
        await writer.drain()

    def _answer_to(self, target: str) -> bytes | None:
        place = urlsplit(target)
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        if place.path.rpartition("/")[2] != "search":
            return http("not here", "404 NOT FOUND")
        if asked.get("format") == "json" and not self.gives_json:
            return http("<h1>Forbidden</h1>", "403 FORBIDDEN")
        if "q" not in asked:
            self.looks += 1
            return http('{"error": "No query"}', "400 BAD REQUEST", "application/json")
        self.asked.append(asked)
        return self.answer
