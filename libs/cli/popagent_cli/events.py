"""`popagent events`: what happens, line by line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import click

from popagent_cli.client import Client, with_client
from popagent_cli.errors import CutError, NotRunningError, RefusedError
from popagent_cli.printing import as_json_option, note, print_json
from popagent_cli.safe_text import one_safe_line
from popagent_cli.sse import SentEvent, sent_events
from popagent_kit import json
from popagent_kit.remedies import is_trouble

# The gateway sends a comment at least every 15 s.
SILENCE_S: Final = 40.0
AGAIN_S: Final = 1.0
PLACES: Final = frozenset({"ready", "resync"})


@click.command()
@click.option(
    "--topics",
    default="sessions,turns,workspaces,settings,agents,skills,hooks,jobs,tasks,schedules,channels,docs,health",
    show_default=True,
)
@as_json_option
@with_client
def events(client: Client, topics: str, as_json: bool) -> None:
    """Follow what happens, line by line, until Ctrl-C.

    A connection that breaks is taken up again where it ended; with --json each line is one event.
    """
    for event in followed(client, "/api/events", {"topics": topics}):
        _show(event, as_json)


def followed(client: Client, path: str, params: dict[str, Any], place: str = "") -> Iterator[SentEvent]:
    """Yield the events of a stream, from `place` on, over as many connections as it takes.

    Raises:
        NotRunningError, CutError: It was never reached.
        RefusedError: It is refused for a lasting reason.
    """
    reached = False
    while True:
        try:
            with client.stream(
                "GET",
                path,
                params=params,
                headers={"last-event-id": place} if place else {},
                silence_s=SILENCE_S,
            ) as response:
                if reached:
                    note("connected again")
                reached = True
                for event in sent_events(response.iter_raw()):
                    place = event.id or place
                    yield event
        except (CutError, NotRunningError) as error:
            if not reached:
                raise
            note(f"{error.message} Trying again.")
        except RefusedError as error:
            if not reached or error.status != 503:
                raise
        time.sleep(AGAIN_S)


def _show(event: SentEvent, as_json: bool) -> None:
    data = json.loads(event.data)
    if as_json:
        print_json({"topic": event.name, "id": event.id or None, "data": data})
    elif event.name == "ready":
        note("listening to " + ", ".join(data["topics"]))
    elif event.name == "resync":
        note("some events were missed")
    else:
        click.echo(f"{time.strftime('%H:%M:%S')}  {one_safe_line(_line(event.name, data), 400)}")


def _line(topic: str, data: dict[str, Any]) -> str:
    if topic == "health":
        bad = [f"{name}: {state}" for name, state in data["checks"].items() if is_trouble(state)]
        bad += [f"{row['service']} is not ready" for row in data["services"] if not row["ready"]]
        return f"health  {'ready' if data['ready'] else 'not ready'}  {', '.join(bad)}".rstrip()
    event = data["event"]
    words = [data["name"]]
    session = event.get("session")
    if isinstance(session, dict):
        words += [session["id"], f"“{session['title']}”"]
    task = event.get("task")
    if isinstance(task, dict):
        words += [task["id"], task["state"], f"“{task['title']}”"]
    words += [str(event[name]) for name in ("state", "errorClass", "sessionId", "taskId") if event.get(name)]
    if isinstance(event.get("job"), dict):
        job = event["job"]
        words += [job["id"], job["state"], f"{job['progress']:.0%}", job["note"]]
    if isinstance(event.get("workspace"), dict):
        words.append(event["workspace"]["name"])
    return "  ".join(words)
