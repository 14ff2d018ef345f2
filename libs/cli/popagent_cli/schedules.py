"""`popagent schedule-…`: what is done again and again, and what came of it."""

from __future__ import annotations

from typing import Any, Final

import click

from popagent_cli.changes import change_listed, find_listed, parsed_changes, tell_changes
from popagent_cli.client import ID, Client, given, with_client
from popagent_cli.printing import as_json_option, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line
from popagent_kit.settings import command

EXAMPLE: Final = """schedule-patch NAME '{"cron":"@daily"}'"""

schedule_argument = click.argument("schedule", metavar="NAME-OR-ID")


@click.command()
@click.option("--workspace", type=ID, help="Only those of this workspace.")
@as_json_option
@with_client
def schedule_list(client: Client, workspace: str | None, as_json: bool) -> None:
    """List schedules by name, with their next and their last time."""
    page = client.get("/api/schedules", workspaceId=workspace)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        example = command('schedule-create "Nightly check" "@daily" "Run the tests and tell what fails."')
        note(f"There is no schedule. Make one: {example}")
        return
    rows = [
        [
            row["name"],
            row["cron"],
            row["cronWords"],
            local_time(row["nextRunAt"]) or "paused",
            _last(row["lastRun"]),
            row["workspaceId"],
            row["id"],
        ]
        for row in page["items"]
    ]
    print_table(["NAME", "RULE", "IN WORDS", "NEXT", "LAST", "WORKSPACE", "ID"], rows, flexible=2)
    note(f"Rules are read in the time zone {page['timezone']}; times are shown in this machine's.")


@click.command()
@click.argument("name")
@click.argument("cron")
@click.argument("prompt")
@click.option("--workspace", type=ID, help="Where it works; else the default one.")
@click.option("--agent", type=ID, help="Who does it; else the orchestrator.")
@click.option("--model", help="Which model; else the default one of the moment.")
@click.option("--max-attempts", type=int, help="Of each task; by default 3.")
@click.option("--catch-up", type=int, help="Minutes after which a missed time is not made up for; by default 10.")
@click.option("--overlap", is_flag=True, help="Run also while a task of an earlier time still runs.")
@click.option("--paused", is_flag=True, help="Do not begin yet.")
@as_json_option
@with_client
def schedule_create(
    client: Client,
    name: str,
    cron: str,
    prompt: str,
    *,
    workspace: str | None,
    agent: str | None,
    model: str | None,
    max_attempts: int | None,
    catch_up: int | None,
    overlap: bool,
    paused: bool,
    as_json: bool,
) -> None:
    """Make a schedule.

    CRON has five fields, minute hour day month weekday, or is @hourly, @daily, @weekly, @monthly or @yearly:

    \b
      popagent schedule-create "Morning" "30 7 * * MON-FRI" "Summarise what changed since yesterday."
    """
    body = {
        "name": name,
        "cron": cron,
        "prompt": prompt,
        "workspaceId": workspace,
        "agentId": agent,
        "model": model,
        "maxAttempts": max_attempts,
        "catchUpMinutes": catch_up,
        "skipIfRunning": False if overlap else None,
        "enabled": False if paused else None,
    }
    made = client.send("POST", "/api/schedules", given(body))
    if as_json:
        print_json(made)
        return
    click.echo(f"{one_safe_line(made['name'])} is made: {made['id']}")
    click.echo(f"{made['cronWords']} ({made['timezone']})")
    note(f"Next: {local_time(made['nextRunAt']) or 'it is paused'}")


@click.command()
@click.argument("cron")
@as_json_option
@with_client
def schedule_preview(client: Client, cron: str, as_json: bool) -> None:
    """Say what a rule means, and when it would fire next; nothing is stored."""
    shown = client.get("/api/schedules/preview", cron=cron)
    if as_json:
        print_json(shown)
        return
    click.echo(f"{shown['words']} ({shown['timezone']})")
    for moment in shown["next"]:
        click.echo(f"  {local_time(moment)}")


@click.command()
@schedule_argument
@click.argument("changes")
@as_json_option
@with_client
def schedule_patch(client: Client, schedule: str, changes: str, as_json: bool) -> None:
    """Change a schedule.

    CHANGES is a JSON object; what it does not name stays as it is:

    \b
      popagent schedule-patch Nightly '{"cron":"@daily"}'
    """
    before, after = _patched(client, schedule, parsed_changes(changes, EXAMPLE))
    tell_changes(before, after, as_json=as_json)


@click.command()
@schedule_argument
@as_json_option
@with_client
def schedule_pause(client: Client, schedule: str, as_json: bool) -> None:
    """Let a schedule rest; tasks that run go on."""
    _, after = _patched(client, schedule, {"enabled": False})
    tell(after, f"{one_safe_line(after['name'])} rests", as_json=as_json)


@click.command()
@schedule_argument
@as_json_option
@with_client
def schedule_resume(client: Client, schedule: str, as_json: bool) -> None:
    """Let a schedule go on; what passed while it rested is not made up for."""
    _, after = _patched(client, schedule, {"enabled": True})
    when = local_time(after["nextRunAt"])
    tell(after, f"{one_safe_line(after['name'])} goes on" + (f", next {when}" if when else ""), as_json=as_json)


@click.command()
@schedule_argument
@as_json_option
@with_client
def schedule_run(client: Client, schedule: str, as_json: bool) -> None:
    """Run a schedule now, paused or not."""
    run = client.send("POST", f"/api/schedules/{_found(client, schedule)['id']}/run")
    tell(run, f"It runs as the task {run['taskId']}", as_json=as_json)


@click.command()
@schedule_argument
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1_000))
@as_json_option
@with_client
def schedule_history(client: Client, schedule: str, limit: int, as_json: bool) -> None:
    """Tell what came of the times of a schedule, the newest first."""
    page = client.pages(f"/api/schedules/{_found(client, schedule)['id']}/runs", limit)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("None of its times has come yet.")
        return
    rows = [
        [
            local_time(row["plannedAt"]),
            "asked for" if row["asked"] else "",
            row["outcome"],
            row["taskId"] or "",
            row["note"],
        ]
        for row in page["items"]
    ]
    print_table(["TIME", "", "OUTCOME", "TASK", "NOTE"], rows, flexible=4)


@click.command()
@schedule_argument
@as_json_option
@with_client
def schedule_delete(client: Client, schedule: str, as_json: bool) -> None:
    """Delete a schedule and its history; its tasks stay."""
    found = _found(client, schedule)
    gone = client.send("DELETE", f"/api/schedules/{found['id']}")
    tell(gone, f"{one_safe_line(found['name'])} is deleted", as_json=as_json)


def _last(run: dict[str, Any] | None) -> str:
    return "" if run is None else f"{local_time(run['plannedAt'])} {run['outcome']}"


def _found(client: Client, schedule: str) -> dict[str, Any]:
    return find_listed(client, "/api/schedules", schedule, what="schedule", listing="schedule-list")


def _patched(client: Client, schedule: str, changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return change_listed(client, "/api/schedules", schedule, changes, what="schedule", listing="schedule-list")
