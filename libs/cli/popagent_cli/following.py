"""One turn from the question to its end, over as many connections as it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx2

from popagent_cli.client import Client
from popagent_cli.errors import CliError, CutError, NotRunningError, RefusedError
from popagent_cli.screen import Screen
from popagent_kit.errors import MalformedJsonError
from popagent_kit.settings import command
from popagent_uistream import chunks
from popagent_uistream.chunks import Chunk
from popagent_uistream.parse import MalformedStreamError, StreamParser
from popagent_uistream.reducer import Message, MessageReducer, OrphanChunkError, client_view
from popagent_uistream.snapshot import snapshot_chunks

TURN_HEADER: Final = "x-popagent-turn-id"
ENDINGS: Final = frozenset({"finish", "abort", "error"})
# The server sends a heartbeat every 3 s.
SILENCE_S: Final = 20.0
# How long a lost connection is tried again without hearing anything, and a busy server before the turn began.
PATIENCE_S: Final = 60.0
BUSY_PATIENCE_S: Final = 10.0
# A shorter loss is not worth a line.
TELL_OF_LOSS_S: Final = 2.0
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 2.0
STORED_PAGE: Final = 20

Opening = Callable[[], AbstractContextManager[httpx2.Response]]


class Sink(Protocol):
    """Where chunks go."""

    def begin(self) -> None:
        """A stream begins, from the start of the message; it may be the second one of the same message."""
        ...

    def take(self, chunk: Chunk) -> None:
        """The next chunk of it, the last one included."""
        ...


@dataclass(frozen=True)
class Outcome:
    """How the turn ended: `ending` is a finish, abort or error chunk."""

    message: Message
    ending: Chunk

    @property
    def error(self) -> str | None:
        """The sentence of a failed turn."""
        return str(self.ending["errorText"]) if self.ending["type"] == "error" else None


class Turn:
    """Follows one turn of a session."""

    def __init__(self, client: Client, session: str, sink: Sink, screen: Screen) -> None:
        self._client = client
        self._session = session
        self._sink = sink
        self._screen = screen
        self._told_of_loss = False
        self._turn_id: str | None = None
        self._message_id = ""
        self._heard_at: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def ask(self, body: dict[str, Any], key: str) -> Outcome:
        """Start the turn and follow it; `key` makes it one turn however often it must be sent.

        Raises:
            NotRunningError, RefusedError: It was not started.
            CliError: The connection was lost and did not come back.
        """
        self._turn_id = key
        headers = {"idempotency-key": key}

        def post() -> AbstractContextManager[httpx2.Response]:
            return self._client.stream("POST", "/api/chat", body, headers=headers, silence_s=SILENCE_S)

        outcome = self._follow(post)
        assert outcome is not None, "a turn that was started has an end"
        return outcome

    def join(self) -> Outcome | None:
        """Follow the running turn; None when nothing runs."""
        return self._follow(self._again)

    def _again(self) -> AbstractContextManager[httpx2.Response]:
        return self._client.stream("GET", f"/api/chat/{self._session}/stream", silence_s=SILENCE_S)

    def _follow(self, opening: Opening) -> Outcome | None:
        began_at = time.monotonic()
        tried = False
        while True:
            try:
                with opening() as response:
                    opening = self._again
                    if response.status_code == 204 or self._is_another(response):
                        return self._stored()
                    outcome = self._read(response)
                if outcome is not None:
                    return outcome
            except NotRunningError:
                if not tried:
                    raise
            except CutError:
                pass
            except RefusedError as error:
                if error.status != 503 or (self._heard_at is None and time.monotonic() - began_at > BUSY_PATIENCE_S):
                    raise
            tried = True
            self._rest(began_at)

    def _rest(self, began_at: float) -> None:
        if time.monotonic() - (self._heard_at or began_at) > PATIENCE_S:
            raise CliError(
                f"The connection was lost and did not come back within {PATIENCE_S:.0f} s. The answer may go on: "
                f"{command(f'watch {self._session}')}"
            )
        self._screen.waiting("connection lost, trying again" if self._heard_at else "waiting for popagent")
        if self._heard_at and not self._told_of_loss and time.monotonic() - self._heard_at > TELL_OF_LOSS_S:
            self._told_of_loss = True  # in the middle of a line nothing else shows what is waited for
            self._screen.note("the connection was lost; trying again")
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    def _is_another(self, response: httpx2.Response) -> bool:
        """Tell whether the session answers something else by now: ours is over."""
        turn_id = response.headers.get(TURN_HEADER)
        if self._turn_id is not None and turn_id is not None and turn_id != self._turn_id and self._heard_at:
            return True
        self._turn_id = turn_id or self._turn_id
        return False

    def _read(self, response: httpx2.Response) -> Outcome | None:
        """Return the end of the turn, or None when the stream ended before it."""
        parser, reducer = StreamParser(), MessageReducer()
        self._sink.begin()
        resumable = False
        ending: Chunk | None = None
        try:
            for data in response.iter_raw():
                self._heard_at = time.monotonic()
                for chunk in parser.feed(data):
                    if chunk["type"] == "data-connection":
                        resumable = bool(chunk["data"].get("resumable"))
                        continue
                    if chunk["type"] == "error" and resumable:
                        return None
                    self._pause_s = FIRST_PAUSE_S
                    reducer.apply(chunk)
                    self._message_id = chunk.get("messageId", self._message_id)
                    ending = chunk if chunk["type"] in ENDINGS else ending
                    self._sink.take(chunk)
                if parser.done:
                    break
        except (MalformedStreamError, OrphanChunkError, MalformedJsonError, KeyError, TypeError) as error:
            raise CliError(f"The answer came in a form that this version does not know: {error}") from error
        return None if ending is None else Outcome(client_view(reducer.message), ending)

    def _stored(self) -> Outcome | None:
        """Return the turn as the session keeps it, showing what was not shown; None when no turn was followed."""
        if self._turn_id is None:
            return None
        view = self._client.get(f"/api/sessions/{self._session}", limit=STORED_PAGE)
        for message in reversed(view["messages"]):
            if message["role"] == "assistant" and self._is_ours(message):
                ending = stored_ending(message)
                self._sink.begin()
                for chunk in snapshot_chunks(message, ending=ending):
                    self._sink.take(chunk)
                return Outcome(message, ending)
        raise CliError(
            f"The answer ended while the connection was lost, and it is not among the newest messages of the session. "
            f"See: {command(f'history {self._session}')}"
        )

    def _is_ours(self, message: Message) -> bool:
        metadata = message.get("metadata")
        return message["id"] == self._message_id or (
            isinstance(metadata, dict) and metadata.get("turnId") == self._turn_id
        )


def stored_ending(message: Message) -> Chunk:
    """Return the chunk that ended the turn of a stored message, as its metadata tells."""
    metadata = message.get("metadata") or {}
    if metadata.get("endReason") == "stopped":
        return chunks.abort(reason="stopped")
    error = metadata.get("error")
    if isinstance(error, dict):
        texts = [part["text"] for part in message["parts"] if part["type"] == "text"]
        return chunks.error(str(error.get("text") or (texts[-1] if texts else "The answer ended with an error.")))
    return chunks.finish()
