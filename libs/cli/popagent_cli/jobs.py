"""Jobs: what takes longer than a request. Followed as they tell of themselves, not by asking again and again."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

import click

from popagent_cli.client import ID, Client, with_client
from popagent_cli.errors import CliError
from popagent_cli.events import AGAIN_S, PLACES, SILENCE_S
from popagent_cli.printing import as_json_option, fit, local_time, note, print_json, print_table
from popagent_cli.safe_text import one_safe_line
from popagent_cli.sse import sent_events
from popagent_kit import json
from popagent_kit.settings import command

FAILED_SILENTLY: Final = "It failed, and nobody said why."
OVER: Final = frozenset({"completed", "failed"})
BAR: Final = 24
# Where no bar can be drawn, so much progress is worth a line.
WORTH_A_LINE: Final = 0.1

wait_option = click.option("--wait/--no-wait", default=True, help="Follow it to its end; the default.")


@click.command()
@as_json_option
@with_client
def jobs(client: Client, as_json: bool) -> None:
    """List the newest jobs, those that are not over first."""
    page = client.get("/api/jobs")
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        note("There are no jobs. A clone is one, an import, and the deletion of all chats of a workspace.")
        return
    rows = [
        [job["id"], job["state"], f"{job['progress']:.0%}", local_time(job["createdAt"]), job["title"] or job["kind"]]
        for job in page["items"]
    ]
    print_table(["JOB", "STATE", ">DONE", "SINCE", "WHAT"], rows)


@click.command(name="job-show")
@click.argument("job", type=ID)
@click.option("--follow", is_flag=True, help="Until it is over; exit code 1 when it failed.")
@as_json_option
@with_client
def show(client: Client, job: str, follow: bool, as_json: bool) -> None:
    """Show how far a job is, or follow it to its end."""
    found = client.get(f"/api/jobs/{job}")
    if follow:
        found = followed(client, found)
    if as_json:
        print_json(found)
        return
    click.echo(f"{click.style(one_safe_line(found['title'] or found['kind']), bold=True)}\n")
    click.echo(f"  id       {found['id']}")
    click.echo(f"  state    {found['state']}, {found['progress']:.0%}")
    click.echo(f"  created  {local_time(found['createdAt'])}, last heard of {local_time(found['updatedAt'])}")
    for name in ("note", "error"):
        if found[name]:
            click.echo(f"  {name:<7}  {one_safe_line(found[name], 1_000)}")
    if found["result"]:
        click.echo(f"  result   {one_safe_line(json.dumps(found['result']).decode(), 1_000)}")


def followed(client: Client, job: dict[str, Any]) -> dict[str, Any]:
    """Return the job as it ended, and show until then how far it is.

    Raises:
        CliError: It failed; the message is its error.
    """
    now = job
    with Bar() as bar:
        for now in _states(client, job):
            bar.show(now)
    if now["state"] == "failed":
        raise CliError(one_safe_line(now["error"] or FAILED_SILENTLY, 1_000))
    return now


def _states(client: Client, job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the job as it is now, and at every step, to its end; a connection that breaks is taken up again."""
    now = job
    yield now
    while now["state"] not in OVER:
        try:
            for now in _told(client, job["id"]):
                yield now
        except CliError as error:
            if not error.is_passing:
                raise
        if now["state"] not in OVER:
            time.sleep(AGAIN_S)


def _told(client: Client, job_id: str) -> Iterator[dict[str, Any]]:
    with client.stream("GET", "/api/events", params={"topics": "jobs"}, silence_s=SILENCE_S) as response:
        for event in sent_events(response.iter_raw()):
            # Asked for once this listens, so that no step is missed.
            known = event.name not in PLACES
            job = json.loads(event.data)["event"]["job"] if known else client.get(f"/api/jobs/{job_id}")
            if job["id"] == job_id:
                yield job
                if job["state"] in OVER:
                    return


def follow_command(job: dict[str, Any]) -> str:
    """Return the command that follows a job."""
    return command(f"job-show {job['id']} --follow")


class Bar:
    """Shows progress on standard error: a bar on a terminal, elsewhere a line now and then."""

    def __init__(self) -> None:
        self._drawn = False
        self._told = -1.0

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()
        if error[0] is KeyboardInterrupt:
            note(f"It goes on: {command('jobs')} shows it.")

    def show(self, job: dict[str, Any]) -> None:
        """Draw what the job tells of itself."""
        share = float(job["progress"])
        text = one_safe_line(job["note"] or job["state"], 200)
        if not sys.stderr.isatty():
            if job["note"] and (share >= self._told + WORTH_A_LINE or share < self._told):
                self._told = share
                note(f"{share:>4.0%}  {text}")
            return
        filled = round(share * BAR)
        line = f"{'█' * filled}{'░' * (BAR - filled)} {share:>4.0%}  {text}"
        click.echo(f"\r\x1b[2K{fit(line, shutil.get_terminal_size().columns - 1)}", nl=False, err=True)
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[2K", nl=False, err=True)
            self._drawn = False
