"""`popagent task-…`: work that goes on when nobody watches."""

from __future__ import annotations

import sys
import time
from typing import Any, Final, get_args

import click

from popagent_cli.client import ID, Client, given, listed_by, with_client
from popagent_cli.deleting import ask_before, yes_option
from popagent_cli.errors import FAILED, CliError
from popagent_cli.events import followed
from popagent_cli.piped import text_of
from popagent_cli.printing import as_json_option, dim, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line, safe
from popagent_cli.workspaces import find_workspace, workspace_name
from popagent_kit import json
from popagent_kit.settings import command
from popagent_proto.task_runner.tasks import TaskState

STATES: Final[tuple[str, ...]] = get_args(TaskState)
ENDED: Final = frozenset({"completed", "failed", "cancelled", "dead-letter"})
LOOK_EVERY_S: Final = 1.0
VALUE_CHARACTERS: Final = 200

task_argument = click.argument("task", type=ID)


@click.command(name="task-create")
@click.argument("workspace")
@click.argument("prompt")
@click.argument("model", required=False)
@click.option("--agent", type=ID, help="Who does it; by default the orchestrator.")
@click.option("--priority", type=click.IntRange(-10, 10), help="The highest goes first; by default 0.")
@click.option("--max-attempts", type=click.IntRange(1, 10), help="By default 3.")
@as_json_option
@with_client
def create(
    client: Client,
    workspace: str,
    prompt: str,
    *,
    model: str | None,
    agent: str | None,
    priority: int | None,
    max_attempts: int | None,
    as_json: bool,
) -> None:
    """Give a task that goes on when nobody watches.

    WORKSPACE is a name or an id; PROMPT is what is to be done, or - to read it from standard input.
    """
    body = {
        "prompt": text_of(prompt),
        "workspaceId": find_workspace(client, workspace)["id"],
        "model": model,
        "agentId": agent,
        "priority": priority,
        "maxAttempts": max_attempts,
    }
    made = client.send("POST", "/api/tasks", given(body))
    tell(made, made["id"], as_json=as_json)
    if not as_json:
        note(f"Watch it: {command('task-show ' + made['id'] + ' --follow')}")


@click.command(name="task-list")
@click.option("--state", "states", multiple=True, type=click.Choice(STATES), help="Only these; may be repeated.")
@click.option("--workspace", help="Only those of one workspace, by name or id.")
@click.option("--schedule", type=ID, help="Only those of one schedule.")
@click.option("--search", metavar="TEXT", help="Only those whose title holds this.")
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 10_000))
@as_json_option
@with_client
def list_tasks(
    client: Client,
    *,
    states: tuple[str, ...],
    workspace: str | None,
    schedule: str | None,
    search: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List tasks, newest first."""
    workspace_id = find_workspace(client, workspace)["id"] if workspace else None
    only = {"state": ",".join(states) or None, "workspaceId": workspace_id, "scheduleId": schedule, "q": search}
    page = client.pages("/api/tasks", limit, **only)
    if as_json:
        print_json(page)
        return
    if not page["items"]:
        some = any(value is not None for value in only.values())
        note("There is no such task." if some else f"There are no tasks yet. Give one: {command('task-create')}")
        return
    rows = [
        [row["id"], local_time(row["createdAt"]), row["state"], _attempts(row), row["title"], _trouble(row)]
        for row in page["items"]
    ]
    print_table(["TASK", "CREATED", "STATE", "ATTEMPTS", "TITLE", ""], rows, flexible=4)
    if page["nextCursor"]:
        note(f"There are more: --limit {limit * 4}")


def _attempts(task: dict[str, Any]) -> str:
    return f"{task['attemptCount']} of {task['maxAttempts']}"


def _trouble(task: dict[str, Any]) -> str:
    if task["interruptedAt"]:
        return "does not end"
    return task["lastErrorClass"] or "" if task["state"] != "completed" else ""


@click.command(name="task-show")
@task_argument
@click.option("--all", "earlier", is_flag=True, help="With the older records of a long transcript too.")
@click.option("--follow", is_flag=True, help="Stay until it has ended; exit code 1 when it did not complete.")
@as_json_option
@with_client
@listed_by("task-list")
def show(client: Client, task: str, *, earlier: bool, follow: bool, as_json: bool) -> None:
    """Show a task and what was done for it."""
    view = client.get(f"/api/tasks/{task}")
    if earlier:
        view |= {"activity": _earlier(client, view) + view["activity"], "previousCursor": None}
    if as_json:
        if follow:
            view = _followed(client, view, _Shown(quiet=True))
        print_json(view)
    else:
        _head(view, workspace_name(client, view["workspaceId"]))
        shown = _Shown(quiet=False)
        if view["previousCursor"] is not None:
            note("(older records are not shown: --all)")
        shown.records(view["activity"])
        if follow:
            view = _followed(client, view, shown)
        shown.close()
        _end(view, shown.last_text)
    if follow and view["state"] != "completed":
        sys.exit(FAILED)


def _followed(client: Client, view: dict[str, Any], shown: _Shown) -> dict[str, Any]:
    """Show what is written until the task has ended, and return it as it is then.

    The task's end is told behind its last record, so that nothing is missing then.
    """
    path = f"/api/tasks/{view['id']}"
    for event in followed(client, f"{path}/events", {}, str(view["revision"])):
        if event.name == "records":
            shown.records(json.loads(event.data)["records"])
        elif event.name == "resync":
            note("some records were missed")
        elif event.name == "deleted":
            raise CliError("The task was deleted.")
        elif event.name == "task" and json.loads(event.data)["state"] in ENDED:
            break
    return _answer(client, path)


def _answer(client: Client, path: str) -> dict[str, Any]:
    """Ask until there is an answer: popagent may be restarting."""
    told = False
    while True:
        try:
            return client.get(path)  # type: ignore[no-any-return]
        except CliError as error:
            if not error.is_passing:
                raise
            if not told:
                note(f"{error.message} Trying again.")
                told = True
        time.sleep(LOOK_EVERY_S)


def _earlier(client: Client, view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records before those of the view, oldest first."""
    records: list[dict[str, Any]] = []
    before = view["previousCursor"]
    while before is not None:
        page = client.get(f"/api/tasks/{view['id']}/transcript", before=before)
        records = page["records"] + records
        before = page["previousCursor"] if page["records"] else None
    return records


class _Shown:
    """Prints records once each, and of a text that grows what came to it."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._texts: dict[int, int] = {}
        self._calls: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._growing: int | None = None
        self.last_text = ""

    def records(self, records: list[dict[str, Any]]) -> None:
        """Print what is new of them."""
        if self._quiet:
            return
        # What was called and has returned since is told once, with what came of it.
        newest = {_key(record, call): call for record in records for call in record["calls"]}
        for record in records:
            if record["kind"] == "text":
                self._text(record)
                continue
            lines = _lines(record, self._new_calls(record, newest))
            if lines:
                self.close()
            for line in lines:
                click.echo(dim(line, sys.stdout))

    def _new_calls(self, record: dict[str, Any], newest: dict[tuple[Any, ...], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the calls of which more is known now than was shown; the end of a step repeats its calls."""
        new = []
        for key in (_key(record, call) for call in record["calls"]):
            call = newest[key]
            known = (call["status"], call["result"], call["error"])
            if self._calls.get(key) != known:
                self._calls[key] = known
                new.append(call)
        return new

    def _text(self, record: dict[str, Any]) -> None:
        seq, text = record["seq"], record["text"]
        said = self._texts.get(seq, 0)
        if self._growing != seq:
            self.close()
        click.echo(safe(text[said:]), nl=False)
        self._texts[seq] = len(text)
        self.last_text = text
        self._growing = seq

    def close(self) -> None:
        """End the line of a text that may still grow."""
        if self._growing is not None:
            click.echo()
        self._growing = None


def _key(record: dict[str, Any], call: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a call from every other one of its task."""
    return record["attempt"], record["agentId"], record["step"], call["callId"]


def _lines(record: dict[str, Any], calls: list[dict[str, Any]]) -> list[str]:
    who = one_safe_line(record["agentId"] or "", 40)
    if record["kind"] == "status":
        return [f"· {one_safe_line(record['text'], 400)}"]
    if record["kind"] == "step-start":
        return [f"— {who} step {record['step']}" if who else f"— step {record['step']}"]
    lines = []
    for call in calls:
        outcome = call["error"] or call["result"] or ""
        arguments = one_safe_line(str(call["arguments"] or ""), VALUE_CHARACTERS)
        line = f"  {call['status']:<9} {one_safe_line(call['tool'], 60)} {arguments}"
        lines.append(line.rstrip() + (f" → {one_safe_line(outcome, VALUE_CHARACTERS)}" if outcome else ""))
    return lines


def _head(task: dict[str, Any], workspace: str) -> None:
    click.echo(f"{click.style(one_safe_line(task['title']), bold=True)}\n")
    rows = [
        ("id", task["id"]),
        ("state", task["state"] + (", does not end though it was told to" if task["interruptedAt"] else "")),
        ("workspace", workspace),
        ("attempts", _attempts(task)),
        ("model", task["model"]),
        ("created", local_time(task["createdAt"])),
        ("next try", local_time(task["nextAttemptAt"]) if task["attemptCount"] else ""),
        ("trace", task["traceId"]),
        ("remediates", task["remediates"]),
        ("remediation", task["remediationId"]),
    ]
    for name, value in rows:
        if value:
            click.echo(f"  {name:<11}  {one_safe_line(value)}")
    click.echo()


def _end(task: dict[str, Any], last_text: str) -> None:
    """Say how it ended; an answer that was the last to be shown is not shown again."""
    if task["state"] == "completed" and not task["resolution"] and task["output"].strip() == last_text.strip():
        return
    click.echo()
    if task["state"] == "completed" and task["resolution"]:
        click.echo(f"resolved: {safe(task['resolution'])}")
    elif task["state"] == "completed":
        click.echo(safe(task["output"]))
    elif task["lastErrorClass"]:
        click.echo(f"{task['state']} ({task['lastErrorClass']}): {one_safe_line(task['lastError'] or '', 1_000)}")
        if task["explanation"]:
            click.echo(one_safe_line(task["explanation"], 1_000))
    else:
        click.echo(task["state"])


@click.command(name="task-cancel")
@task_argument
@as_json_option
@with_client
@listed_by("task-list")
def cancel(client: Client, task: str, as_json: bool) -> None:
    """Cancel a task; one that runs ends first."""
    answer = client.send("POST", f"/api/tasks/{task}/cancel")
    tell(answer, f"{task} is {answer['state']}", as_json=as_json)


@click.command(name="task-resolve")
@task_argument
@click.argument("evidence")
@as_json_option
@with_client
@listed_by("task-list")
def resolve(client: Client, task: str, evidence: str, as_json: bool) -> None:
    """Call a task done that did not complete, and say why it is."""
    answer = client.send("POST", f"/api/tasks/{task}/resolve", {"evidence": evidence})
    tell(answer, f"{task} is {answer['state']}", as_json=as_json)


@click.command(name="task-retry")
@task_argument
@as_json_option
@with_client
@listed_by("task-list")
def retry(client: Client, task: str, as_json: bool) -> None:
    """Try a failed or dead-lettered task once more.

    It stays the same task, and is told which calls its earlier attempts had begun, to look before it repeats one.
    """
    answer = client.send("POST", f"/api/tasks/{task}/retry")
    tell(answer, f"{task} is {answer['state']}", as_json=as_json)
    if not as_json:
        note(f"Watch it: {command(f'task-show {task} --follow')}")


@click.command(name="task-delete")
@task_argument
@yes_option
@as_json_option
@with_client
@listed_by("task-list")
def delete(client: Client, task: str, yes: bool, as_json: bool) -> None:
    """Delete a task that has ended, with its transcript."""
    ask_before(lambda: f"“{one_safe_line(client.get(f'/api/tasks/{task}', limit=0)['title'], 60)}”", yes=yes)
    tell(client.send("DELETE", f"/api/tasks/{task}"), f"{task} is deleted", as_json=as_json)
