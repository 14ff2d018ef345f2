"""A chat as a file, written while it is read: one page of messages is in memory at a time."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncIterator
from typing import Final, Literal
from urllib.parse import quote

from starlette.responses import Response, StreamingResponse

from popagent_bus import Bus
from popagent_gateway.export import markdown
from popagent_kit import json
from popagent_proto.chat.sessions import OutlineSession, ReadBranch, SessionOutline, UiMessage

Format = Literal["markdown", "json"]

KINDS: Final[dict[Format, tuple[str, str]]] = {
    "markdown": ("md", "text/markdown; charset=utf-8"),
    "json": ("json", "application/json"),
}
NAME_CHARACTERS: Final = 80
UNTITLED: Final = "chat"
# Separators, what a shell or a system takes for its own, and what no eye can see.
_NOT_IN_NAMES: Final = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+')
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


async def download(bus: Bus, session_id: str, form: Format) -> Response:
    """Return the answer; what is asked for later and fails then cuts it off.

    Raises:
        NotFoundError: No such session.
    """
    outline = await bus.ask(OutlineSession(session_id=session_id))
    ending, media_type = KINDS[form]
    content = _markdown(bus, outline) if form == "markdown" else _json(bus, outline)
    headers = {"content-disposition": disposition(outline.session.title, ending)}
    return StreamingResponse(content, media_type=media_type, headers=headers)


def disposition(title: str, ending: str) -> str:
    """Return a content-disposition whose file name is made from a title, in ASCII and for those who read more."""
    name = " ".join(_NOT_IN_NAMES.sub(" ", title).split()).strip(". ")[:NAME_CHARACTERS].rstrip(". ") or UNTITLED
    # Some systems take look-alikes for the letters that they stand for.
    if _DEVICES.match(unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().strip(". ")):
        name = f"{UNTITLED} {name}"
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join(re.sub(r"[^A-Za-z0-9 ._()-]", " ", plain).split())[:NAME_CHARACTERS].strip(". ") or UNTITLED
    return f"attachment; filename=\"{plain}.{ending}\"; filename*=UTF-8''{quote(f'{name}.{ending}', safe='')}"


async def _markdown(bus: Bus, outline: SessionOutline) -> AsyncIterator[bytes]:
    yield markdown.head(outline).encode()
    async for message in _messages(bus, outline):
        yield markdown.section(message, outline.agent).encode()


async def _json(bus: Bus, outline: SessionOutline) -> AsyncIterator[bytes]:
    yield b'{"session":' + json.dumps(outline.session.wire()) + b',"messages":['
    separator = b""
    async for message in _messages(bus, outline):
        yield separator + json.dumps(message)
        separator = b","
    yield b"]}"


async def _messages(bus: Bus, outline: SessionOutline) -> AsyncIterator[UiMessage]:
    for page in outline.pages:
        for message in (await bus.ask(ReadBranch(session_id=outline.session.id, page=page))).messages:
            yield message
