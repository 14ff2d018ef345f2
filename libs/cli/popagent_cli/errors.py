"""What a command says when it cannot do what was asked: one sentence on standard error, and an exit code."""

from __future__ import annotations

from typing import Any, Final

import click

# 2 is click's own: the command line was not understood.
FAILED: Final = 1
INTERRUPTED: Final = 130

EXIT_CODES: Final = (
    "Exit codes: 0 done · 1 refused, failed or not well; standard error says why in one sentence"
    " · 2 the command line was not understood · 130 ended by Ctrl-C."
)


class CliError(click.ClickException):
    """Ends the command with exit code 1; the message says what to do."""

    exit_code = FAILED
    is_passing = False
    """Whether the same request may be answered in a moment, as while popagent is restarted."""


class NotRunningError(CliError):
    """Nothing listens at the address."""

    is_passing = True


class CutError(CliError):
    """The connection broke or timed out; whether the request was carried out is not known."""

    is_passing = True


class RefusedError(CliError):
    """popagent answered, with a refusal."""

    def __init__(self, message: str, *, status: int, code: str, body: dict[str, Any], retry_after_s: float) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.body = body
        self.retry_after_s = retry_after_s
        self.is_passing = status == 503
