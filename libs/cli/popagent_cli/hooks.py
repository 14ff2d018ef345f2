"""`popagent hooks`: programs of yours that are asked before something happens, or told after it did."""

from __future__ import annotations

import sys
from typing import Final, get_args

import click

from popagent_cli.changes import change_listed, find_listed, parsed_changes, tell_changes
from popagent_cli.client import ID, Client, given, with_client
from popagent_cli.errors import FAILED, CliError
from popagent_cli.printing import as_json_option, duration, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line
from popagent_cli.secret_input import given_secret, secret_option
from popagent_kit.settings import command
from popagent_local.groups import Group
from popagent_proto.chat.hooks import HookEvent

EXAMPLE: Final = """hooks patch ID '{"enabled":false}'"""
EVENTS: Final[tuple[str, ...]] = get_args(HookEvent)

hook_argument = click.argument("hook", metavar="NAME-OR-ID")
signed_with = secret_option(
    "--secret", "What requests are signed with: asked without showing it, the first line of standard input, or nothing."
)


@click.group(cls=Group, invoke_without_command=True)
@as_json_option
@click.option("--url", "nearer_url", default=None, hidden=True)
@click.pass_context
def hooks(ctx: click.Context, as_json: bool, nearer_url: str | None) -> None:
    """Programs of yours that agents ask before they act."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_hooks, as_json=as_json, nearer_url=nearer_url)


@hooks.command(name="list")
@as_json_option
@with_client
def list_hooks(client: Client, as_json: bool) -> None:
    """List hooks in the order in which they run."""
    page = client.get("/api/hooks")
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note(f"There is no hook. Add one: {command('hooks add NAME --event PreToolUse --to URL')}")
        return
    rows = [
        [
            str(row["orderIndex"]),
            row["event"],
            row["matcher"],
            row["name"],
            row["url"] or " ".join(row["argv"]),
            row["onFailure"],
            "on" if row["enabled"] else "off",
            row["id"],
        ]
        for row in page["items"]
    ]
    print_table([">ORDER", "EVENT", "MATCHER", "NAME", "WHERE", "IF IT FAILS", "", "ID"], rows, flexible=4)


@hooks.command()
@click.argument("name")
@click.argument("program", nargs=-1)
@click.option("--event", required=True, type=click.Choice(EVENTS), help="When it is called.")
@click.option("--to", "url", help="Where it is posted; POPAGENT_HOOK_ORIGINS must name its origin.")
@click.option("--matcher", help="Which tools: * or a regular expression; by default all.")
@click.option("--timeout-ms", type=int, help="Milliseconds; by default 5,000.")
@click.option("--on-failure", type=click.Choice(["allow", "block"]), help="What a failure means; by default block.")
@click.option("--order", type=int, help="The lowest runs first; by default 100.")
@signed_with
@as_json_option
@with_client
def add(
    client: Client,
    name: str,
    program: tuple[str, ...],
    *,
    event: str,
    url: str | None,
    matcher: str | None,
    timeout_ms: int | None,
    on_failure: str | None,
    order: int | None,
    secret_from: str | None,
    as_json: bool,
) -> None:
    """Add a hook; the next run uses it.

    It is a URL, or a PROGRAM with its arguments; those that begin with - stand behind --:

    \b
      popagent hooks add Guard --event PreToolUse --to http://127.0.0.1:9000/
      popagent hooks add Guard --event PreToolUse -- /hooks/guard.py --strict
    """
    if (url is None) == (not program):
        raise CliError("Give either --to with a URL, or a program.")
    place = {"url": url} if url is not None else {"kind": "command", "argv": list(program)}
    more = given({"matcher": matcher, "timeoutMs": timeout_ms, "onFailure": on_failure, "orderIndex": order})
    body = {"name": name, "event": event, **place, **more, **given_secret("secret", secret_from)}
    made = client.send("POST", "/api/hooks", body)
    if as_json:
        print_json(made)
        return
    click.echo(f"{one_safe_line(made['name'])} is added: {made['id']}")
    note(f"Try it: {command('hooks test ' + made['id'])}")


@hooks.command()
@hook_argument
@click.argument("changes", required=False)
@signed_with
@as_json_option
@with_client
def patch(client: Client, hook: str, changes: str | None, secret_from: str | None, as_json: bool) -> None:
    """Change a hook.

    CHANGES is a JSON object; what it does not name stays as it is:

    \b
      popagent hooks patch ID '{"enabled":false}'
    """
    wanted = {**(parsed_changes(changes, EXAMPLE) if changes else {}), **given_secret("secret", secret_from)}
    if not wanted:
        raise CliError(f"Say what to change: {command(EXAMPLE)}")
    before, after = change_listed(client, "/api/hooks", hook, wanted, what="hook", listing="hooks")
    if secret_from is not None and not changes and not as_json:
        click.echo("Requests are signed with it from now on." if after["hasSecret"] else "Requests are not signed.")
    else:
        tell_changes(before, after, as_json=as_json)


@hooks.command()
@hook_argument
@as_json_option
@with_client
def delete(client: Client, hook: str, as_json: bool) -> None:
    """Delete a hook; what it did stays in the audit."""
    found = find_listed(client, "/api/hooks", hook, what="hook", listing="hooks")
    gone = client.send("DELETE", f"/api/hooks/{found['id']}")
    tell(gone, f"{one_safe_line(found['name'])} is deleted", as_json=as_json)


@hooks.command()
@hook_argument
@as_json_option
@with_client
def test(client: Client, hook: str, as_json: bool) -> None:
    """Run a hook on an example of its event. Exit code 1 when it fails; a refusal is no failure."""
    tried = find_listed(client, "/api/hooks", hook, what="hook", listing="hooks")
    found = client.send("POST", f"/api/hooks/{tried['id']}/test")
    if as_json:
        print_json(found)
    else:
        verdict = {"allow": "agrees", "deny": "refuses"}.get(found["decision"] or "", "was told")
        click.echo(f"{found['status']}, {verdict}, {duration(found['durationMs'])}")
        if found["reason"]:
            click.echo(one_safe_line(found["reason"], 600))
        if found["output"]:
            note(f"It answered: {one_safe_line(found['output'], 600)}")
    sys.exit(0 if found["status"] in {"ok", "denied"} else FAILED)


@hooks.command()
@click.argument("session", type=ID)
@click.option("--task", "of_task", is_flag=True, help="SESSION is the id of a task.")
@click.option("--turn", type=ID, help="Only those of this turn, or of this attempt of the task.")
@as_json_option
@with_client
def runs(client: Client, session: str, *, of_task: bool, turn: str | None, as_json: bool) -> None:
    """List what hooks did in a session or a task, in the order in which they ran; --json tells all they were told."""
    path = f"/api/tasks/{session}/hooks" if of_task else f"/api/sessions/{session}/hooks"
    page = client.pages(path, 10_000, turnId=turn)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("No hook ran here.")
        return
    rows = [
        [row["event"], row["subject"], row["hookName"], row["status"], duration(row["durationMs"]), row["reason"]]
        for row in page["items"]
    ]
    print_table(["EVENT", "TOOL", "HOOK", "STATUS", ">TOOK", "REASON"], rows, flexible=5)
