"""`popagent chat` without a question, on a terminal: one after the other, until the reader leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import click

from popagent_cli.conversation import Conversation, says_it_itself
from popagent_cli.errors import CliError
from popagent_cli.printing import local_time, note
from popagent_cli.safe_text import one_safe_line
from popagent_kit.ids import new_id
from popagent_kit.settings import command, home_folder

HISTORY_LINES: Final = 1_000
LISTED: Final = 10
HELP: Final = """\
  /new              begin a new session
  /sessions [N]     show the newest sessions, or go on with the N-th
  /model [ID]       show the models, or answer with another one
  /help             show this
  /quit             leave; Ctrl-D does it too
Ctrl-C stops an answer and keeps what was written."""


class Dialogue:
    """A small loop around one conversation."""

    def __init__(self, conversation: Conversation, *, reasoning: bool) -> None:
        self._conversation = conversation
        self._reasoning = reasoning
        self._listed: list[str] = []
        self._asked = False
        self._commands = {"/new": self._new, "/sessions": self._sessions, "/model": self._model, "/help": self._help}

    def run(self) -> None:
        """Read, ask and show until `/quit`, Ctrl-D or Ctrl-C twice."""
        note("Ask something. /help shows what else can be done, /quit leaves.")
        with _line_history():
            interrupted = False
            while True:
                try:
                    line = input("› ").strip()
                    interrupted = False
                except EOFError:
                    click.echo()
                    break
                except KeyboardInterrupt:
                    click.echo()
                    if interrupted:
                        break
                    interrupted = True
                    note("Ctrl-C again leaves.")
                    continue
                if line in {"/quit", "/exit"}:
                    break
                if line:
                    self._carry_out(line)
        if self._asked:
            note(f"go on later: {command(f'chat --session {self._conversation.session}')}")

    def _carry_out(self, line: str) -> None:
        name, _, argument = line.partition(" ")
        try:
            if not line.startswith("/"):
                self._ask(line)
            elif name in self._commands:
                self._commands[name](argument.strip())
            else:
                note(f"There is no {one_safe_line(name, 40)}. /help shows what there is.")
        except CliError as error:
            error.show()
        except KeyboardInterrupt:
            note("left the answer; it may go on on the server")

    def _ask(self, text: str) -> None:
        self._asked = True
        outcome, _ = self._conversation.converse(text, reasoning=self._reasoning)
        if outcome.error is not None and not says_it_itself(outcome):
            raise CliError(one_safe_line(outcome.error, 1_000))
        click.echo()

    def _new(self, argument: str) -> None:
        del argument
        self._conversation.session = new_id()
        note("a new session")

    def _sessions(self, argument: str) -> None:
        if argument:
            self._go_on(argument)
            return
        items = self._conversation.client.get("/api/sessions", limit=LISTED)["items"]
        self._listed = [row["id"] for row in items]
        for number, row in enumerate(items, start=1):
            here = "→" if row["id"] == self._conversation.session else " "
            click.echo(f"{here}{number:>3}  {local_time(row['updatedAt'])}  {one_safe_line(row['title'], 60)}")
        note("/sessions N goes on with one of them" if items else "There are no sessions yet.")

    def _go_on(self, argument: str) -> None:
        if not argument.isdigit() or not 1 <= int(argument) <= len(self._listed):
            note("Show them with /sessions, then give the number of one: /sessions 2")
            return
        self._conversation.session = self._listed[int(argument) - 1]
        view = self._conversation.client.get(f"/api/sessions/{self._conversation.session}", limit=1)
        note(f"going on with “{one_safe_line(view['title'], 80)}”")

    def _model(self, argument: str) -> None:
        view = self._conversation.client.get("/api/models")
        if not argument:
            current = self._conversation.model or view["defaultModel"]
            for model in view["models"]:
                click.echo(f"{'→' if model == current else ' '} {one_safe_line(model)}")
            note("/model ID answers with another one" if view["models"] else one_safe_line(view["note"], 400))
        elif view["known"] and argument not in view["models"]:
            note(f"There is no model {one_safe_line(argument, 80)}. /model shows them.")
        else:
            self._conversation.model = argument
            note(f"the next answers come from {one_safe_line(argument, 80)}")

    def _help(self, argument: str) -> None:
        del argument
        click.echo(HELP)


@contextlib.contextmanager
def _line_history() -> Iterator[None]:
    """Let the arrow keys bring back earlier questions, also those of earlier days; without a line editor, nothing."""
    try:
        import readline  # noqa: PLC0415 (not every Python has it)
    except ImportError:
        yield
        return
    file = home_folder() / "chat-history"
    readline.set_history_length(HISTORY_LINES)
    with contextlib.suppress(OSError):  # the first time there is none
        readline.read_history_file(file)
    try:
        yield
    finally:
        if file.parent.is_dir():
            try:
                file.touch(mode=0o600)
                readline.write_history_file(file)
            except OSError as error:
                note(f"the questions were not kept in {file}: {error.strerror}")
