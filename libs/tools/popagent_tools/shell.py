"""The tools that run commands in the run's workspace, confined; what they printed is cut to what the model can hold."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from popagent_agent.run_context import RunContext
from popagent_agent.toolset import tool
from popagent_kit.errors import ConflictError, ForbiddenError
from popagent_sandbox.commands import DEFAULT_TIMEOUT_S, LONGEST_TIMEOUT_S, Commands
from popagent_sandbox.confined import Ended
from popagent_sandbox.output import Printed
from popagent_tools.workspace import CHARACTERS_PER_TOKEN

# Setting the sandbox up and ending what runs in it take their time, too.
MARGIN_S: Final = 60
NEWS_S: Final = 5.0
FEWEST_CHARACTERS: Final = 400
# For the line that says how it ended.
TOLD_CHARACTERS: Final = 200


class NoCommandsError(ConflictError):
    """There is no workspace in this conversation that commands could run in."""

    code = "no_commands"


class CommandsForbiddenError(ForbiddenError):
    """Commands can change files, and this run may only read the workspace."""

    code = "commands_forbidden"


@tool("shell", access="exec", timeout_s=LONGEST_TIMEOUT_S + MARGIN_S)
async def run_shell(
    run: RunContext,
    command: str,
    timeout_s: Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT_S)] = DEFAULT_TIMEOUT_S,
    background: bool = False,
) -> str:
    """Run a bash command in the workspace, for example its tests. There is no network. What it starts ends with it.

    With background=true it runs on until this turn ends, and shellProcess reads what it prints.
    """
    commands = _commands(run)
    if background:
        name = await commands.start(command)
        return f"Started in the background as {name}. Read it with shellProcess."
    ran = await commands.run(command, timeout_s)
    hint = ""
    if ran.ended.status is None and timeout_s < LONGEST_TIMEOUT_S:
        hint = f" timeout_s can be up to {LONGEST_TIMEOUT_S}."
    return f"{_end(ran.ended)}{hint}\n{_shown(run, ran.printed)}"


@tool("shellProcess", access="exec", timeout_s=MARGIN_S)
async def shell_process(run: RunContext, process: str, end: bool = False) -> str:
    """Read what a background command printed since the last look. With end=true, end it."""
    commands = _commands(run)
    look = await (commands.end(process) if end else commands.look(process, NEWS_S))
    state = "Still running." if look.ended is None else _end(look.ended)
    return f"{state}\n{_shown(run, look.printed)}"


def _commands(run: RunContext) -> Commands:
    if run.workspace is None or run.workspace.commands is None:
        raise NoCommandsError
    if run.workspace.access != "read-write":
        raise CommandsForbiddenError
    return run.workspace.commands


def _end(ended: Ended) -> str:
    return f"Ended: {ended.why}." if ended.status is None else f"Exit status {ended.status}."


def _shown(run: RunContext, printed: Printed) -> str:
    room = run.model.tool_output_tokens * CHARACTERS_PER_TOKEN - TOLD_CHARACTERS
    return printed.within(max(FEWEST_CHARACTERS, room)).rstrip() or "(no output)"
