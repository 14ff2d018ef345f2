"""Secrets that a person gives a command, from anywhere but its arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click


def secret_option(flag: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # noqa: A002 (click's)
    """Return the option that says where the secret comes from; the command is given it as `secret_from`."""
    # Never an argument: other users of the machine could read it there, and the shell would keep it.
    return click.option(flag, "secret_from", type=click.Choice(["ask", "stdin", "none"]), help=help)


def given_secret(field: str, source: str | None) -> dict[str, str | None]:
    """Return the field of a body with the secret, null for `none`; nothing where the option was not given."""
    match source:
        case "ask":
            return {field: click.prompt(field.capitalize(), hide_input=True)}
        case "stdin":
            return {field: sys.stdin.readline().strip()}
        case "none":
            return {field: None}
        case _:
            return {}
