"""Channels of a test's own, with what was written into them: made as rows, since a client cannot write for others."""

from __future__ import annotations

from typing import Final

from tests.stored import connected
from tests.suite import POSTGRES, Suite

MAKE: Final = "insert into chat.channels (id, title, last_seq, revision) values ($1, $2, $3, $3)"
# A message every two hours, the newest an hour ago.
WRITE: Final = """
insert into chat.channel_messages
    (id, channel_id, seq, revision, author_kind, author_id, author_name, body, created_at)
select $1 || '-' || n, $1, n, n, 'agent', 'researcher', 'Researcher', $3 || n,
    clock_timestamp() - make_interval(hours => 1 + 2 * ($2 - n))
from generate_series(1, $2::int) as n
"""
READ: Final = "insert into chat.channel_cursors (channel_id, reader, last_read_seq) values ($1, 'user', $2)"
DROP: Final = (
    "delete from chat.channel_cursors where channel_id = $1",
    "update chat.channel_messages set thread_id = null where channel_id = $1",
    "delete from chat.channel_messages where channel_id = $1",
    "delete from chat.channels where id = $1",
)


async def make_channel(suite: Suite, channel: str, messages: int = 0, *, read: int = 0, body: str = "Line ") -> None:
    """Make a channel in which the researcher wrote so many messages, each with its number behind `body`."""
    await _run(suite, (MAKE, channel, f"#{channel}", messages), (WRITE, channel, messages, body), (READ, channel, read))


async def drop_channel(suite: Suite, channel: str) -> None:
    """Remove a channel with everything in it."""
    await _run(suite, *((statement, channel) for statement in DROP))


async def _run(suite: Suite, *statements: tuple[object, ...]) -> None:
    password = (suite.home / "credentials/postgres-application").read_text(encoding="utf-8").strip()
    async with connected(suite.program(POSTGRES).port, password, "popagent") as conn:
        for statement, *arguments in statements:
            await conn.execute(str(statement), *arguments)
