"""`popagent chat`, `watch` and `stop`."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from popagent_cli.client import ID, Client, with_client
from popagent_cli.conversation import Conversation, remarks, says_it_itself
from popagent_cli.errors import FAILED, INTERRUPTED, CliError, RefusedError
from popagent_cli.following import Outcome, Sink, Turn
from popagent_cli.piped import FROM_STANDARD_INPUT, piped_text
from popagent_cli.printing import as_json_option, note, print_json
from popagent_cli.rendering import Rendering, Silence
from popagent_cli.safe_text import one_safe_line
from popagent_cli.screen import Screen
from popagent_cli.workspaces import find_workspace
from popagent_kit.ids import new_id
from popagent_kit.settings import command
from popagent_uistream.chunks import Chunk

reasoning_option = click.option("--reasoning", is_flag=True, help="Show what the model thinks, dimmed.")
stream_option = click.option(
    "--json-stream", is_flag=True, help="Print each chunk as a line of JSON; `start` begins the message (again)."
)


class ChunkLines:
    """Prints chunks as they come, one a line."""

    def begin(self) -> None:
        """The `start` chunk says it."""

    def take(self, chunk: Chunk) -> None:
        """Print it."""
        print_json(chunk)


@click.command()
@click.argument("message", nargs=-1)
@click.option("--session", type=ID, help="Go on in this session.")
@click.option("--continue", "go_on", is_flag=True, help="Go on in the session that was active last.")
@click.option("--new", is_flag=True, help="Begin a new session (the default).")
@click.option("--workspace", help="Work in this workspace, by name or id; a session keeps its first one.")
@click.option("--model", help="A model of `popagent models`.")
@reasoning_option
@as_json_option
@stream_option
@with_client
def chat(
    client: Client,
    *,
    message: tuple[str, ...],
    session: str | None,
    go_on: bool,
    new: bool,
    workspace: str | None,
    model: str | None,
    reasoning: bool,
    as_json: bool,
    json_stream: bool,
) -> None:
    """Ask, and watch the answer grow.

    MESSAGE is read from standard input when it is - or when something is piped in. Without one, on a terminal,
    questions are asked one after the other. The answer goes to standard output, tool calls and remarks to standard
    error. Ctrl-C stops the answer and keeps what was written; a second one leaves at once.
    """
    if (session is not None) + go_on + new > 1:
        raise click.UsageError("Give one of --session, --continue and --new.")
    text = _text_of(message)
    conversation = _conversation(client, session, go_on)
    conversation.model = model
    conversation.workspace_id = find_workspace(client, workspace)["id"] if workspace else None
    if text is None:
        if as_json or json_stream:
            raise click.UsageError("JSON output needs a MESSAGE.")
        from popagent_cli.dialogue import Dialogue  # noqa: PLC0415 (one question needs no line editor)

        Dialogue(conversation, reasoning=reasoning).run()
        return
    if as_json or json_stream:
        _finish(*_ask_for_program(conversation, text, json_stream), told=False)
    else:
        outcome, stopped = _converse(conversation, text, reasoning)
        _finish(outcome, stopped, told=sys.stdout.isatty() and says_it_itself(outcome))


@click.command()
@click.argument("session", type=ID)
@reasoning_option
@as_json_option
@stream_option
@with_client
def watch(client: Client, session: str, reasoning: bool, as_json: bool, json_stream: bool) -> None:
    """Watch the answer that is being written in a session.

    It is shown from its beginning. Ctrl-C leaves; the answer goes on.
    """
    began_at = time.monotonic()
    with Screen() as screen:
        sink: Sink = Rendering(screen, reasoning=reasoning)
        if as_json or json_stream:
            sink = ChunkLines() if json_stream else Silence(screen)
        outcome = Turn(client, session, sink, screen).join()
        screen.waiting("")
        for line in remarks(outcome, time.monotonic() - began_at, False) if outcome else []:
            screen.note(line)
    if outcome is None:
        client.get(f"/api/sessions/{session}", limit=1)  # an id that does not exist is told so
        note(f"Nothing is being written in this session. Its messages: {command(f'sessions show {session}')}")
        return
    if as_json:
        print_json(outcome.message)
    _finish(outcome, False, told=sys.stdout.isatty() and says_it_itself(outcome))


@click.command()
@click.argument("session", type=ID)
@as_json_option
@with_client
def stop(client: Client, session: str, as_json: bool) -> None:
    """Stop the answer that is being written; what was written is kept."""
    try:
        view = client.send("POST", f"/api/chat/{session}/stop")
    except RefusedError as error:
        if error.status == 404:
            raise CliError("Nothing is being written in this session.") from error
        raise
    if as_json:
        print_json(view)
    else:
        click.echo(f"asked to stop; what was written is kept: {command(f'sessions show {session}')}")


def _text_of(words: tuple[str, ...]) -> str | None:
    """Return the question, or None when a person will type it."""
    if words and words != (FROM_STANDARD_INPUT,):
        text = " ".join(words)
    elif words or not sys.stdin.isatty():
        text = piped_text()
    else:
        return None
    if not text.strip():
        raise click.UsageError("The message is empty.")
    return text.replace("\x00", "")


def _conversation(client: Client, session: str | None, go_on: bool) -> Conversation:
    if session is not None:
        # The server would begin a new session under an unknown id; here it is more likely mistyped.
        try:
            client.get(f"/api/sessions/{session}", limit=1)
        except RefusedError as error:
            if error.status == 404:
                raise CliError(f"There is no session {session}. `{command('sessions list')}` shows them.") from error
            raise
        return Conversation(client, session)
    if go_on:
        newest: list[dict[str, Any]] = client.get("/api/sessions", limit=1)["items"]
        if not newest:
            raise CliError("There is no session to go on with yet. Leave --continue out to begin one.")
        note(f"going on with “{one_safe_line(newest[0]['title'], 80)}”")
        return Conversation(client, newest[0]["id"])
    return Conversation(client, new_id())


def _ask_for_program(conversation: Conversation, text: str, json_stream: bool) -> tuple[Outcome, bool]:
    with Screen() as screen:
        outcome, stopped = conversation.ask(text, screen, ChunkLines() if json_stream else Silence(screen))
    if not json_stream:
        print_json({**outcome.message, "sessionId": conversation.session})
    return outcome, stopped


def _converse(conversation: Conversation, text: str, reasoning: bool) -> tuple[Outcome, bool]:
    try:
        outcome, stopped = conversation.converse(text, reasoning=reasoning)
    except KeyboardInterrupt:
        note(f"left; the answer may go on: {command(f'watch {conversation.session}')}")
        sys.exit(INTERRUPTED)
    if sys.stderr.isatty():
        note(f"go on: {command('chat --continue')}")
    return outcome, stopped


def _finish(outcome: Outcome, stopped: bool, *, told: bool) -> None:
    if outcome.error is not None:
        if told:
            sys.exit(FAILED)
        raise CliError(one_safe_line(outcome.error, 1_000))
    if outcome.ending["type"] == "abort":
        sys.exit(INTERRUPTED if stopped else FAILED)
