"""`popagent channel-…`: what people and agents write where everybody reads it."""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import click

from popagent_cli.client import ID, Client, given, with_client
from popagent_cli.deleting import ask_before, yes_option
from popagent_cli.events import followed
from popagent_cli.piped import text_of
from popagent_cli.printing import as_json_option, dim, local_time, note, print_json, print_table, tell
from popagent_cli.safe_text import one_safe_line, safe
from popagent_cli.workspaces import find_workspace
from popagent_kit import json
from popagent_kit.settings import command
from popagent_proto.chat.agents import ORCHESTRATOR

GENERAL: Final = "general"
MOST_NAMED: Final = 10
_TASK_LINK: Final = re.compile(r"\[Task: ((?:\\.|[^\[\]\\])*)\]\(/tasks/([A-Za-z0-9_-]+)\)")
_ESCAPED: Final = re.compile(r"\\(.)")
# As the names are found that start a task.
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.S)
_NAMED: Final = re.compile(r"(?<![\w@./-])@([A-Za-z0-9][A-Za-z0-9_-]{0,63})")

channel_option = click.option("--channel", default=GENERAL, show_default=True, type=ID, help="Its id.")
message_argument = click.argument("message", type=ID)


@click.command(name="channel-list")
@as_json_option
@with_client
def channel_list(client: Client, as_json: bool) -> None:
    """List channels, with what is unread."""
    page = client.get("/api/channels")
    if as_json:
        print_json(page)
        return
    rows = [[row["id"], row["title"], str(row["lastSeq"]), str(row["unread"])] for row in page["items"]]
    print_table(["CHANNEL", "TITLE", ">MESSAGES", ">UNREAD"], rows, flexible=1)


@click.command(name="channel-post")
@click.argument("text")
@channel_option
@click.option("--thread", type=ID, help="The message that this one answers.")
@click.option("--workspace", help="Where the agent that is named works, by name or id.")
@as_json_option
@with_client
def channel_post(
    client: Client, text: str, *, channel: str, thread: str | None, workspace: str | None, as_json: bool
) -> None:
    """Write into a channel; naming an @agent starts a task.

    TEXT is Markdown, or - to read it from standard input. What the agent says last is the reply.
    """
    workspace_id = find_workspace(client, workspace)["id"] if workspace else None
    body = {"body": text_of(text), "threadId": thread, "workspaceId": workspace_id}
    posted = client.send("POST", f"/api/channels/{channel}/messages", given(body))
    tell(posted, posted["id"], as_json=as_json)
    if not as_json and not posted["mentions"]:
        _tell_strangers(client, posted["body"])
    if posted["run"] and not as_json:
        note(f"A task was started. Watch for the reply: {command('channel-tail --follow')}")


@click.command(name="channel-tail")
@channel_option
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200))
@click.option("--thread", type=ID, help="Only a message and its answers.")
@click.option("--follow", is_flag=True, help="Stay, until Ctrl-C.")
@as_json_option
@with_client
def channel_tail(client: Client, *, channel: str, limit: int, thread: str | None, follow: bool, as_json: bool) -> None:
    """Show what was written last, or as it is written.

    A connection that breaks is taken up again where it ended; with --json each line is one message.
    """
    page = client.get(f"/api/channels/{channel}/messages", limit=limit, threadId=thread)
    if not page["items"] and not follow:
        note(f"Nothing was written yet. Say something: {command('channel-post')}")
    for message in page["items"]:
        _show(message, as_json=as_json)
    if not follow:
        return
    shown = {message["id"] for message in page["items"]}
    for event in followed(client, f"/api/channels/{channel}/events", {}, str(page["revision"])):
        if event.name == "resync":
            note("some messages were missed")
        elif event.name == "message":
            message = json.loads(event.data)
            if thread in (None, message["id"], message["threadId"]):
                _show(message, as_json=as_json, changed=message["id"] in shown)
                shown.add(message["id"])


def _show(message: dict[str, Any], *, as_json: bool, changed: bool = False) -> None:
    if as_json:
        print_json(message)
        return
    when = local_time(message["createdAt"])
    head = f"{when}  {one_safe_line(message['authorName'], 60)}  {message['id']}"
    answers = f"  answers {message['threadId']}" if message["threadId"] else ""
    click.echo(dim(f"{head}{answers}{_run(message)}", sys.stdout))
    if message["deletedAt"]:
        click.echo("(deleted)\n")
    elif not changed or message["editedAt"]:
        click.echo(f"{safe(_readable(message['body']))}\n")


def _readable(body: str) -> str:
    """Return a text whose links to tasks, which lead somewhere on the page alone, are told as title and id."""
    return _TASK_LINK.sub(lambda link: "Task: " + _ESCAPED.sub(r"\1", link[1]) + f" ({link[2]})", body)


def _tell_strangers(client: Client, body: str) -> None:
    """Say of names behind an @ that nobody has them."""
    names = list(dict.fromkeys(_NAMED.findall(_CODE.sub(" ", body))))
    if not names:
        return
    items = client.get("/api/agents")["items"]
    known = ", ".join(f"@{row['id']}" for row in items if row["delegable"] or row["id"] == ORCHESTRATOR)
    said = ", ".join(f"@{name}" for name in names[:MOST_NAMED])
    note(f"Nobody who can be asked is called {said}. There are: {known}.")


def _run(message: dict[str, Any]) -> str:
    run = message["run"]
    if not run:
        return ""
    return f"  task {run['state']}" + (f": {one_safe_line(run['note'], 200)}" if run["note"] else "")


@click.command(name="channel-edit")
@message_argument
@click.argument("text")
@channel_option
@as_json_option
@with_client
def channel_edit(client: Client, message: str, text: str, *, channel: str, as_json: bool) -> None:
    """Change the text of a message of yours."""
    answer = client.send("PATCH", f"/api/channels/{channel}/messages/{message}", {"body": text_of(text)})
    tell(answer, f"{message} is changed", as_json=as_json)


@click.command(name="channel-delete")
@message_argument
@channel_option
@yes_option
@as_json_option
@with_client
def channel_delete(client: Client, message: str, *, channel: str, yes: bool, as_json: bool) -> None:
    """Take the text of a message out for good."""
    ask_before(lambda: message, yes=yes)
    answer = client.send("DELETE", f"/api/channels/{channel}/messages/{message}")
    tell(answer, f"{message} is deleted", as_json=as_json)


@click.command(name="channel-cancel")
@message_argument
@channel_option
@as_json_option
@with_client
def channel_cancel(client: Client, message: str, *, channel: str, as_json: bool) -> None:
    """Cancel the task that a message started."""
    answer = client.send("POST", f"/api/channels/{channel}/messages/{message}/cancel")
    state = answer["run"]["state"] if answer["run"] else "not there"
    tell(answer, f"its task is {state}", as_json=as_json)


@click.command(name="channel-read")
@channel_option
@as_json_option
@with_client
def channel_read(client: Client, *, channel: str, as_json: bool) -> None:
    """Count everything in a channel as read."""
    page = client.get("/api/channels")
    newest = next((row["lastSeq"] for row in page["items"] if row["id"] == channel), 0)
    answer = client.send("PUT", f"/api/channels/{channel}/read", {"seq": newest})
    tell(answer, f"{answer['unread']} unread", as_json=as_json)


@click.command(name="channel-settings")
@click.option("--auto-reply/--no-auto-reply", default=None, help="Posts that name nobody are answered too.")
@click.option("--agent", type=ID, help="Who answers them; orchistrator is the orchestrator.")
@as_json_option
@with_client
def channel_settings(client: Client, *, auto_reply: bool | None, agent: str | None, as_json: bool) -> None:
    """Show or change what posts start."""
    changes = given({"autoReply": auto_reply, "agentId": agent})
    path = "/api/channels/settings"
    settings = client.send("PATCH", path, changes) if changes else client.get(path)
    if as_json:
        print_json(settings)
        return
    answers = f"answered by {settings['agentId'] or 'the orchestrator'}" if settings["autoReply"] else "not answered"
    click.echo(f"A post that names nobody is {answers}.")
