"""A chat as a file: how it reads, what it is called, and that it is never whole in memory."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from popagent_gateway.export import markdown
from popagent_gateway.export.contained import contained
from popagent_gateway.export.download import disposition
from popagent_kit import json
from popagent_kit.clock import wire_time
from popagent_kit.errors import NotFoundError
from popagent_proto.chat.sessions import (
    BranchMessages,
    BranchPage,
    OutlineSession,
    ReadBranch,
    SessionOutline,
    SessionSummary,
)

from .conftest import Owner, Served
from .test_routes import SUMMARY

TEXT = "Yes:\n\n```py\nprint(1)\n```"
QUESTION = {
    "id": "m1",
    "role": "user",
    "parts": [{"type": "text", "text": "Is it *there*?"}],
    "metadata": {"createdAt": "2026-11-30T23:04:05.000Z"},
}
CALL = {
    "type": "tool-read",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"path": "a.md"},
    "output": "a\n````\nb",
    "toolMetadata": {"durationMs": 1234},
}
FAILED_CALL = {"type": "tool-grep", "toolCallId": "c2", "state": "output-error", "errorText": "No `word`."}
ANSWER = {
    "id": "m2",
    "role": "assistant",
    "parts": [
        {"type": "step-start"},
        {"type": "reasoning", "text": "Let me see.", "state": "done"},
        CALL,
        FAILED_CALL,
        {"type": "text", "text": TEXT},
    ],
    "metadata": {"createdAt": "2026-11-30T23:04:06.000Z", "state": "completed"},
}
READS = """
## You · 2026-11-30 23:04 UTC

Is it *there*?

## Orchestrator · 2026-11-30 23:04 UTC

**Tool `read`** (1,234 ms)

Input:

```json
{
  "path": "a.md"
}
```

Output:

`````
a
````
b
`````

**Tool `grep`**

Error:

```
No `word`.
```

Yes:

```py
print(1)
```
"""


def outline(pages: int, **session: Any) -> SessionOutline:
    refs = [BranchPage(last_id=f"m{number}", count=2) for number in range(pages)]
    summary = SessionSummary(**{**SUMMARY, **session})
    return SessionOutline(session=summary, workspace="Mine", agent="Orchestrator", pages=refs)


async def test_a_chat_is_downloaded_as_markdown_that_reads_well(http: httpx2.AsyncClient, chat: Owner) -> None:
    whole = outline(1, title="A “chat”: über/alles")
    chat.answer(OutlineSession, whole)
    chat.answer(ReadBranch, BranchMessages(messages=[QUESTION, ANSWER]))

    answer = await http.get("/api/sessions/s1/export")

    begun = wire_time(whole.session.created_at)[:16].replace("T", " ")
    assert answer.text == f"# A “chat”: über/alles\n\nWorkspace: Mine · {begun} UTC\n{READS}"
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    named = answer.headers["content-disposition"]
    assert named.startswith("attachment; filename=\"A chat uber alles.md\"; filename*=UTF-8''")
    assert unquote(named.partition("UTF-8''")[2]) == "A “chat” über alles.md"


async def test_a_chat_is_downloaded_as_json(http: httpx2.AsyncClient, chat: Owner) -> None:
    whole = outline(2)
    chat.answer(OutlineSession, whole)
    chat.answer(ReadBranch, BranchMessages(messages=[QUESTION, ANSWER]))

    answer = await http.get("/api/sessions/s1/export?format=json")
    chat.answer(OutlineSession, outline(0))
    empty = await http.get("/api/sessions/s1/export?format=json")

    assert answer.json() == {"session": whole.session.wire(), "messages": [QUESTION, ANSWER] * 2}
    assert [asked.page.last_id for asked in chat.asked if isinstance(asked, ReadBranch)] == ["m0", "m1"]
    assert empty.json()["messages"] == []


async def test_an_unknown_chat_and_another_format_are_refused(http: httpx2.AsyncClient, chat: Owner) -> None:
    chat.answer(OutlineSession, NotFoundError())

    unknown = await http.get("/api/sessions/s1/export")
    other = await http.get("/api/sessions/s1/export?format=pdf")

    assert (unknown.status_code, unknown.headers["content-type"]) == (404, "application/json")
    assert (other.status_code, other.json()["field"]) == (422, "format")


async def test_a_slow_reader_is_read_for_slowly_and_a_break_leaves_no_whole_file(
    served: Served, chat: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    large = {**QUESTION, "parts": [{"type": "text", "text": "x" * 700_000}]}
    chat.answer(OutlineSession, outline(60))
    chat.answer(ReadBranch, BranchMessages(messages=[large]))

    async with served.http.stream("GET", "/api/sessions/s1/export") as answer:
        pieces = answer.aiter_bytes()
        await anext(pieces)
        for _ in range(100):  # the server is given every chance to read on
            await served.http.get("/api/sessions/s1/export?format=pdf")
        asked_early = read_pages(chat)
        size = sum([len(piece) async for piece in pieces])
    asked = read_pages(chat)
    chat.answer(ReadBranch, NotFoundError("This session was deleted while it was read."))
    with pytest.raises(httpx2.RemoteProtocolError):
        await served.http.get("/api/sessions/s1/export")

    cut_off = [record for record in caplog.records if record.name == "popagent_gateway.observed"]
    assert [(record.levelname, record.getMessage()) for record in cut_off] == [("WARNING", "an answer was cut off")]
    assert vars(cut_off[0])["reason"] == "This session was deleted while it was read."
    assert size > 60 * 700_000
    assert asked_early < 40
    assert asked == 60


def read_pages(chat: Owner) -> int:
    return sum(isinstance(asked, ReadBranch) for asked in chat.asked)


@pytest.mark.parametrize(
    ("metadata", "ending"),
    [
        ({"state": "stopped"}, "*Stopped by the person; what was written until then is kept.*"),
        (
            {"state": "interrupted", "error": {"class": "interrupted", "text": "It stopped."}},
            "*Interrupted. It stopped.*",
        ),
        ({"state": "failed", "error": {"class": "timeout", "text": "No answer."}}, "*Failed. No answer.*"),
        ({"state": "failed"}, "*Failed.*"),
        ({"state": "completed"}, "Half a"),
    ],
)
def test_how_a_turn_ended_is_said_once_in_words(metadata: dict[str, Any], ending: str) -> None:
    said = {"type": "text", "text": "No answer.", "providerMetadata": {"popagent": {"failure": True}}}
    parts = [{"type": "text", "text": "Half a"}, said]

    text = markdown.section({"id": "m", "role": "assistant", "parts": parts, "metadata": metadata}, "Orchestrator")

    assert text == f"\n## Orchestrator\n\nHalf a\n{'' if ending == 'Half a' else f'{chr(10)}{ending}{chr(10)}'}"


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("a\n```py\nx = 1", "a\n```py\nx = 1\n```"),
        ("~~~~\nx\n~~~", "~~~~\nx\n~~~\n~~~~"),
        ("```\nx\n````\nrest", "```\nx\n````\nrest"),
        ("``` code ``` in a line", "``` code ``` in a line"),
        ("    ```\nindented", "    ```\nindented"),
    ],
)
def test_a_fence_that_an_answer_leaves_open_does_not_swallow_the_rest(text: str, closed: str) -> None:
    message = {"id": "m", "role": "assistant", "parts": [{"type": "text", "text": text}]}

    assert markdown.section(message, "Orchestrator") == f"\n## Orchestrator\n\n{closed}\n"


HTML = (
    "<!-- x",
    "<pre>",
    "<SCRIPT src=x",
    "<style>",
    "<textarea\n",
    "<?php",
    "<!DOCTYPE x",
    "<![CDATA[x",
    "<details>",
    "</div>",
)
STANDING = (
    "{}\n\nrest",
    "  {}",
    "text\n    {}",
    "> {}",
    "- {}\n  y",
    "1. a\n\n   {}",
    "`code` and {}",
    "\\\\{}",
    "```\n{}\n```\n{}",
)


@pytest.mark.parametrize("html", HTML)
def test_html_in_an_answer_is_text_and_does_not_swallow_the_rest(html: str) -> None:
    for standing in STANDING:
        text = standing.replace("{}", html)

        assert rest_of(text) == ["Orchestrator", "You"], text
        assert not read_as(text, "html_block", "html_inline"), text


@pytest.mark.parametrize(
    "text",
    [
        *("```html\n<script>\n```", "`<script>` and `` ` <b>``", "    <pre>\n", "<https://a.b> and a < b", "\\<b>"),
        *(
            "10. a\n\n    ```sh\n    <x>\n    ```",
            "- ```py\n  <x>\n  ```",
            "> ```\n> <x>\n> ```",
            "~~~\n<!--\n```\n~~~",
        ),
        *("- ```py\n  never ended", "> ~~~\n> never ended"),
    ],
)
def test_code_and_what_is_no_html_is_exported_as_it_is(text: str) -> None:
    assert contained(text) == text
    assert rest_of(text) == ["Orchestrator", "You"]


def test_what_a_fence_stood_in_ends_it() -> None:
    assert contained("- ```py\n  x\nrest\n```\n<b>") == "- ```py\n  x\nrest\n```\n<b>\n```"
    assert contained("> ```\n> x\n<b>") == "> ```\n> x\n\\<b>"


def test_a_title_and_a_name_are_text() -> None:
    head = markdown.head(outline(1, title="<script> of `<b>`"))

    assert head.startswith("# \\<script> of `<b>`\n")


def exported(text: str) -> list[Token]:
    messages = [
        {"id": "m", "role": role, "parts": [{"type": "text", "text": text}]}
        for role, text in (("assistant", text), ("user", "more"))
    ]
    return MarkdownIt("commonmark").parse("".join(markdown.section(message, "Orchestrator") for message in messages))


def rest_of(text: str) -> list[str]:
    """Return the headings that a reader shows."""
    tokens = exported(text)
    return [after.content for token, after in pairwise(tokens) if token.type == "heading_open" and token.level == 0]


def read_as(text: str, *types: str) -> list[Token]:
    return [each for token in exported(text) for each in (token, *(token.children or ())) if each.type in types]


def test_hostile_names_stay_one_line() -> None:
    call = {
        "type": "dynamic-tool",
        "toolName": "a`b\n# c\u202e",
        "toolCallId": "1",
        "state": "input-available",
        "input": 1,
    }

    text = markdown.section({"id": "m", "role": "assistant", "parts": [call]}, "Or\nchestrator")

    assert text.startswith(
        "\n## Or chestrator\n\n**Tool `a'b # c`**\n\nInput:\n\n```json\n1\n```\n\nThere is no result."
    )


@pytest.mark.parametrize(
    ("title", "plain", "name"),
    [
        ("Notes of today", "Notes of today.md", "Notes of today.md"),
        ("../../etc/passwd", "etc passwd.md", "etc passwd.md"),
        ('a"; x="b\r\nset-cookie: y', "a x= b set-cookie y.md", "a ; x= b set-cookie y.md"),
        ("日本語", "chat.md", "日本語.md"),
        ("", "chat.md", "chat.md"),
        ("...", "chat.md", "chat.md"),
        ("CON", "chat CON.md", "chat CON.md"),
        ("ＣＯＮ", "chat CON.md", "chat ＣＯＮ.md"),
        ("日本 nul", "chat nul.md", "chat 日本 nul.md"),
        ("com¹", "chat com1.md", "chat com¹.md"),
        ("x" * 200, "x" * 80 + ".md", "x" * 80 + ".md"),
        ("㎯" * 80, "rads2" * 16 + ".md", "㎯" * 80 + ".md"),
        ("\u202egpj.exe", "gpj.exe.md", "gpj.exe.md"),
    ],
)
def test_a_file_is_named_safely_after_the_title(title: str, plain: str, name: str) -> None:
    told = disposition(title, "md")

    first, _, encoded = told.partition("; filename*=UTF-8''")
    assert first == f'attachment; filename="{plain.replace("=", " ").replace("  ", " ")}"'
    assert unquote(encoded) == name
    assert told.isascii()
    assert json.dumps(told).count(b"\\") == 2 * told.count('"') // 2
