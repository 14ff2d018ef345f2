"""The commands that run popagent on this machine; `popagent_cli` adds them to its own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from popagent_kit import json
from popagent_kit.errors import AppError
from popagent_kit.settings import home_folder
from popagent_local.model_server.commands import model
from popagent_local.programs import LONGEST_STOP_S

P = ParamSpec("P")
T = TypeVar("T")
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def plainly(command: Callable[P, T]) -> Callable[P, T]:
    """Turn our own errors into one sentence and exit code 1."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except AppError as error:
            raise click.ClickException(error.message) from error

    return wrapped


def print_json(value: Any) -> None:
    """Print one line of JSON."""
    click.echo(json.dumps(value).decode())


@click.group()
def local() -> None:
    """Run popagent on this machine."""


@local.command()
@click.option("--detach", is_flag=True, help="Return when it is healthy; stop it with `popagent down`.")
@click.option("--quiet", is_flag=True, help="Keep the programs' lines in their files.")
@click.option("--with-parent", type=int, default=None, hidden=True, help="Stop when this process, our parent, ends.")
@plainly
def up(detach: bool, quiet: bool, with_parent: int | None) -> None:
    """Start everything and stay in the foreground; Ctrl-C stops all of it."""
    from popagent_local import up as module  # noqa: PLC0415 (each command loads what it needs)

    sys.exit(module.up_detached() if detach else module.up(follow=not quiet, parent=with_parent))


@local.command()
@click.option("--timeout", "timeout_s", default=LONGEST_STOP_S, show_default=True, help="Seconds to wait.")
@plainly
def down(timeout_s: float) -> None:
    """Stop everything; returns when all is gone."""
    from popagent_local.down import down as stop  # noqa: PLC0415

    click.echo("stopped" if stop(home_folder(), timeout_s) else "popagent does not run")


@local.command()
@as_json_option
@plainly
def status(as_json: bool) -> None:
    """Show what runs, where it listens, and whether it is well; exit code 1 when something is not."""
    from popagent_local import status as module  # noqa: PLC0415

    view = asyncio.run(module.status(home_folder()))
    if as_json:
        print_json(view.as_dict())
    else:
        click.echo(module.render(view))
    sys.exit(0 if view.well else 1)


@local.command()
@click.argument("service", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option("-n", "--lines", default=40, show_default=True, help="Lines of each file to begin with.")
@click.option("--raw", is_flag=True, help="As written: one JSON object a line.")
@plainly
def logs(service: str | None, follow: bool, lines: int, raw: bool) -> None:
    """Show the logs of all programs, or of one."""
    from popagent_local import logs as module  # noqa: PLC0415
    from popagent_local.output import Terminal  # noqa: PLC0415

    terminal = Terminal()
    files = module.log_files(home_folder(), service)

    def show(name: str, line: str) -> None:
        if raw:
            terminal.say(line)
        else:
            terminal.line(name, line)

    for name, line in module.last(files, lines):
        show(name, line)
    if follow:
        with contextlib.suppress(KeyboardInterrupt):
            for name, line in module.follow(files):
                show(name, line)


@local.command()
@as_json_option
@plainly
def doctor(as_json: bool) -> None:
    """Check what this machine must offer; every failure says its fix."""
    from dataclasses import asdict  # noqa: PLC0415

    from popagent_local.doctor import checks  # noqa: PLC0415

    found = list(checks())
    if as_json:
        print_json({"items": [asdict(check) for check in found]})
    else:
        for check in found:
            mark = click.style("✓", "green") if check.ok else click.style("✗" if check.matters else "!", "red")
            click.echo(f"  {mark} {check.name:<28} {check.detail}")
            if not check.ok:
                click.echo(f"    {'fix: ' + check.fix}")
    sys.exit(0 if all(check.ok or not check.matters for check in found) else 1)


@local.command()
@click.option("--print", "only_print", is_flag=True, help="Print the SQL and the NATS block for an administrator.")
@plainly
def bootstrap(only_print: bool) -> None:
    """Make roles, schemas, extensions and streams; may be repeated."""
    from popagent_local import bootstrap as module  # noqa: PLC0415
    from popagent_local.settings import LocalSettings  # noqa: PLC0415

    if only_print:
        click.echo(module.script(module.described_infrastructure(home_folder(), LocalSettings.load())))
        return
    infrastructure = module.reachable_infrastructure(home_folder(), LocalSettings.load())

    async def work() -> None:
        await module.make_roles(infrastructure)
        await module.make_streams(infrastructure)

    asyncio.run(work())
    click.echo("roles, schemas, extensions and streams are in place")


@local.command()
@plainly
def migrate() -> None:
    """Bring every schema up to date; may be repeated."""
    from popagent_local import bootstrap as module  # noqa: PLC0415
    from popagent_local.settings import LocalSettings  # noqa: PLC0415

    infrastructure = module.reachable_infrastructure(home_folder(), LocalSettings.load())
    done = asyncio.run(module.run_migrations(infrastructure))
    for name in done.migrations:
        click.echo(f"applied {name}")
    click.echo("every schema is up to date")


@local.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@plainly
def provision(folder: Path) -> None:
    """Write the logins that services started without `up` need: nats.conf, and one .env a service."""
    from popagent_local import provision as module  # noqa: PLC0415
    from popagent_local.settings import LocalSettings  # noqa: PLC0415

    for path in module.provision(home_folder(), LocalSettings.load(), folder.absolute()):
        click.echo(f"wrote {path}")


@local.command()
@as_json_option
@click.option("--reference", is_flag=True, help="Print the reference of all variables as Markdown.")
@plainly
def config(as_json: bool, reference: bool) -> None:
    """Show every setting, its value and where it comes from; secrets stay hidden."""
    from popagent_local import config as module  # noqa: PLC0415

    if reference:
        from popagent_local import reference as written  # noqa: PLC0415

        click.echo(written.document(), nl=False)
    elif as_json:
        keys = ("env", "value", "source", "default", "secret", "description")
        print_json({"items": [{key: getattr(row, key) for key in keys} for row in module.rows()]})
    else:
        click.echo(module.render(module.rows()))


@local.command(name="install-service")
@click.option("--system/--user", "system", default=None, help="For the machine, or for you; as root the former.")
@click.option("--print", "only_print", is_flag=True, help="Print the unit, write nothing.")
@plainly
def install_service(system: bool | None, only_print: bool) -> None:
    """Write a systemd unit that keeps popagent running."""
    import os  # noqa: PLC0415

    from popagent_local import install_service as module  # noqa: PLC0415

    unit = module.unit(home_folder(), system=os.geteuid() == 0 if system is None else system)
    if only_print:
        click.echo(unit.text, nl=False)
        return
    backup = module.install(unit)
    click.echo(f"wrote {unit.path}" + (f" (the one before is {backup})" if backup else "") + "\nnow run:")
    for command in unit.commands:
        click.echo(f"  {command}")


local.add_command(model)
