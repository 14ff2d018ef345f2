"""Query parameters of reads whose message also carries an id from the path."""

from __future__ import annotations

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Text, Wire
from popagent_proto.chat.sessions import SearchText


class SessionPage(Wire):
    """Which messages of a session; without a cursor the newest. `around` is the id of a message."""

    before: Text | None = Field(default=None, max_length=200)
    after: Text | None = Field(default=None, max_length=200)
    around: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=100, ge=1, le=200)


class MessageSearch(Wire):
    """What is searched in a session."""

    q: SearchText
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class HookRunPage(Wire):
    """Which runs of hooks; without a cursor from the first on, with `turnId` those of one turn."""

    turn_id: Id | None = None
    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)


class ScheduleRunPage(Wire):
    """Which runs of a schedule; without a cursor the newest."""

    cursor: Text | None = Field(default=None, max_length=200)
    limit: int = Field(default=50, ge=1, le=200)
