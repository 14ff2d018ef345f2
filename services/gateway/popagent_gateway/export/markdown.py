"""A chat as Markdown that reads well anywhere: headings, texts as they are, tool calls as short blocks."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from popagent_gateway.export.contained import as_text, contained
from popagent_kit.text import one_line
from popagent_proto.chat.sessions import SessionOutline, UiMessage

Part = dict[str, Any]

# What no reader shows, or what makes text read as something else.
_UNSEEN: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_TICKS: Final = re.compile("`+")
STOPPED: Final = "Stopped by the person; what was written until then is kept."


def head(outline: SessionOutline) -> str:
    """Return the beginning: title, workspace, date."""
    session = outline.session
    line = f"Workspace: {_line(outline.workspace)} · {_moment(session.created_at)}"
    text = f"# {_line(session.title) or 'Chat'}\n\n{line}\n"
    return text if outline.pages else f"{text}\nThere are no messages yet.\n"


def section(message: UiMessage, agent: str) -> str:
    """Return one message, beginning with a blank line."""
    metadata = message.get("metadata") or {}
    name = "You" if message["role"] == "user" else _line(agent)
    written = metadata.get("createdAt")
    title = f"## {name}" + (f" · {_moment(datetime.fromisoformat(written))}" if written else "")
    blocks = [title, *(block for part in message["parts"] for block in _part(part)), *_ending(metadata)]
    return "\n" + "\n\n".join(blocks) + "\n"


def _part(part: Part) -> list[str]:
    if part["type"] == "text":
        told_below = (part.get("providerMetadata") or {}).get("popagent", {}).get("failure")
        text = _clean(part["text"]).strip("\n")
        return [] if told_below or not text.strip() else [contained(text)]
    if "toolCallId" in part:
        return _call(part)
    if part["type"] == "file":
        return [f"File: {_line(part.get('filename') or 'without a name')} ({_line(part['mediaType'])})"]
    if part["type"] in {"source-url", "source-document"}:
        return [f"Source: {_line(str(part.get('title') or ''))} {_line(str(part.get('url') or ''))}".rstrip()]
    return []


def _call(part: Part) -> list[str]:
    name = part["toolName"] if part["type"] == "dynamic-tool" else part["type"].removeprefix("tool-")
    took_ms = (part.get("toolMetadata") or {}).get("durationMs")
    took = f" ({took_ms:,} ms)" if isinstance(took_ms, int) else ""
    blocks = [f"**Tool `{_line(name).replace('`', chr(39))}`**{took}"]
    given = part.get("input", part.get("rawInput"))
    if given not in (None, {}, ""):
        blocks += ["Input:", _fenced(given)]
    match part["state"]:
        case "output-available":
            blocks += ["Output:", _fenced(part["output"])]
        case "output-error":
            blocks += ["Error:", _fenced(part["errorText"])]
        case "output-denied":
            blocks.append("It was not allowed.")
        case _:
            blocks.append("There is no result.")
    return blocks


def _ending(metadata: dict[str, Any]) -> list[str]:
    sentence = _line(str((metadata.get("error") or {}).get("text", "")), 2_000)
    match metadata.get("state"):
        case "stopped":
            return [f"*{STOPPED}*"]
        case "interrupted":
            return [f"*{f'Interrupted. {sentence}'.rstrip()}*"]
        case "failed":
            return [f"*{f'Failed. {sentence}'.rstrip()}*"]
        case _:
            return []


def _fenced(value: Any) -> str:
    """Return a block whose fence is longer than any run of its sign inside."""
    kind, text = ("", value) if isinstance(value, str) else ("json", _indented(value))
    text = _clean(text).strip("\n")
    fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{fence}{kind}\n{text}\n{fence}"


def _indented(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _clean(text: str) -> str:
    return _UNSEEN.sub("", text.replace("\r\n", "\n"))


def _line(text: str, limit: int = 300) -> str:
    return as_text(one_line(_UNSEEN.sub("", text), limit))


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
