"""What goes for good: on a terminal a person is asked before, elsewhere what was typed is meant."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from popagent_cli.errors import CliError

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def ask_before(what: Callable[[], str], *, yes: bool) -> None:
    """Ask whether to delete; `what` is found out only then.

    Raises:
        CliError: The answer is no.
    """
    if not yes and sys.stdin.isatty() and not click.confirm(f"Delete {what()} for good?", err=True):
        raise CliError("Nothing was deleted.")
