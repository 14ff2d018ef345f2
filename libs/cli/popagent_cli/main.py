"""`popagent`: one command line for talking to popagent and for running it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from popagent_cli.catalogue import COMMANDS, SECTIONS
from popagent_cli.errors import EXIT_CODES, INTERRUPTED, CliError
from popagent_kit.errors import AppError


class Commands(click.Group):
    """Loads a command's code when it is called, so that `--help` answers at once."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse what no request could carry, before it is sent in part."""
        if any("\ud800" <= char <= "\udfff" for argument in args for char in argument):
            raise click.UsageError("An argument is not valid text in this terminal's encoding (UTF-8).", ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the catalogue."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None for an unknown name."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command and its arguments; for an unknown name say which are like it."""
        name = args[0]
        if not name.startswith("-") and name not in COMMANDS and (near := like(name)):
            raise click.UsageError(f"No such command {name[:60]!r}. There are: {', '.join(near)}.", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in their groups, without loading one of them."""
        del ctx
        widest = max(map(len, COMMANDS))
        for title, entries in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), entry.help) for name, entry in entries.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; errors of our own become one sentence, Ctrl-C becomes 130."""
        try:
            return super().invoke(ctx)
        except AppError as error:
            raise CliError(error.message) from error
        except KeyboardInterrupt:
            click.echo(err=True)
            sys.exit(INTERRUPTED)


def like(name: str) -> list[str]:
    """Return the commands of the thing that `name` is called by, be it one or several, else those spelled alike."""
    thing = name.lower().rstrip("s-") or name
    import difflib  # noqa: PLC0415 (no other command needs it)

    near = [each for each in COMMANDS if each in {thing, f"{thing}s"} or each.startswith((f"{thing}-", f"{thing}s-"))]
    return near or difflib.get_close_matches(name.lower(), COMMANDS, n=5)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 (costs more than all else here)

        click.echo(f"popagent {version('popagent')}")
        ctx.exit()


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=f"`popagent COMMAND --help` says more. {EXIT_CODES}",
)
@click.option("--url", metavar="URL", help="Address of popagent; by default the one that runs on this machine.")
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="And exit.")
@click.pass_context
def main(ctx: click.Context, url: str | None) -> None:
    """Talk to popagent, look inside it, and run it on this machine.

    The key, where one is needed, is taken from POPAGENT_API_KEY or the .env file that holds it.
    """
    ctx.obj = url
