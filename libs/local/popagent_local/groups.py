"""How the help of a group lists its commands."""

from __future__ import annotations

from typing import Final

import click

LONGEST: Final = 400


class Group(click.Group):
    """Lists each command with its whole first sentence, over several lines where it has to."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below the options."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        shown = [(name, each) for name, each in found if each is not None and not each.hidden]
        rows = [(name, each.get_short_help_str(LONGEST)) for name, each in shown]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
