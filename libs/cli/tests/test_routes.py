from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fastapi.routing import APIRoute
from starlette.responses import Response

from popagent_cli.catalogue import COMMANDS
from popagent_cli.main import main
from popagent_cli.routes import VERBS
from popagent_gateway.api import make_api
from popagent_gateway.streams.topics import TOPICS, parse_topics
from popagent_kit import json
from popagent_local.commands import local
from popagent_uistream import chunks as c

from .conftest import Peer, Run

EMPTY_ZIP = b"PK\x05\x06" + bytes(18)
TRACE = "0" * 31 + "1"
ENDLESS = ("events", "channel-tail --follow")
# How each verb is called so that it reaches its route.
CALLS: dict[str, list[str]] = {
    "chat": ["chat", "Hello"],
    "watch": ["watch", "s1"],
    "stop": ["stop", "s1"],
    "sessions list": ["sessions", "list"],
    "sessions new": ["sessions", "new"],
    "sessions show": ["sessions", "show", "s1"],
    "sessions shorten": ["sessions", "shorten", "s1", "--keep", "1"],
    "sessions find": ["sessions", "find", "s1", "a", "word"],
    "history": ["history", "s1"],
    "sessions branch": ["sessions", "branch", "s1", "m1"],
    "sessions rename": ["sessions", "rename", "s1", "A title"],
    "sessions delete": ["sessions", "delete", "s1"],
    "workspace list": ["workspace", "list"],
    "workspace add": ["workspace", "add", "code/house"],
    "workspace candidates": ["workspace", "candidates"],
    "workspace rename": ["workspace", "rename", "example", "Another"],
    "workspace delete": ["workspace", "delete", "example"],
    "workspace delete-sessions": ["workspace", "delete-sessions", "example", "--yes", "--no-wait"],
    "jobs": ["jobs"],
    "job-show": ["job-show", "chat_1"],
    "agents": ["agents"],
    "agents patch": ["agents", "patch", "example", '{"name":"Scout"}'],
    "agent-health": ["agent-health"],
    "company": ["company"],
    "skill-list": ["skill-list", "researcher"],
    "skill-import": ["skill-import", "researcher", "notes"],
    "skill-enable": ["skill-enable", "researcher", "example"],
    "skill-delete": ["skill-delete", "researcher", "example"],
    "hooks": ["hooks"],
    "hooks add": ["hooks", "add", "Guard", "--event", "PreToolUse", "--to", "http://127.0.0.1:9000/"],
    "hooks patch": ["hooks", "patch", "example", '{"enabled":false}'],
    "hooks delete": ["hooks", "delete", "example"],
    "hooks test": ["hooks", "test", "example"],
    "hooks runs": ["hooks", "runs", "s1"],
    "task-list": ["task-list"],
    "task-create": ["task-create", "example", "Count the herons."],
    "task-show": ["task-show", "example"],
    "task-show --all": ["task-show", "example", "--all"],
    "task-show --follow": ["task-show", "example", "--follow"],
    "task-retry": ["task-retry", "example"],
    "task-cancel": ["task-cancel", "example"],
    "task-resolve": ["task-resolve", "example", "It is done."],
    "task-delete": ["task-delete", "example", "--yes"],
    "schedule-list": ["schedule-list"],
    "schedule-create": ["schedule-create", "Nightly", "@daily", "Count the herons."],
    "schedule-preview": ["schedule-preview", "@daily"],
    "schedule-patch": ["schedule-patch", "example", '{"name":"Daily"}'],
    "schedule-delete": ["schedule-delete", "example"],
    "schedule-run": ["schedule-run", "example"],
    "schedule-history": ["schedule-history", "example"],
    "channel-list": ["channel-list"],
    "channel-settings": ["channel-settings"],
    "channel-settings --auto-reply": ["channel-settings", "--auto-reply"],
    "channel-tail": ["channel-tail"],
    "channel-tail --follow": ["channel-tail", "--follow"],
    "channel-post": ["channel-post", "Hello"],
    "channel-edit": ["channel-edit", "m1", "Goodbye"],
    "channel-delete": ["channel-delete", "m1", "--yes"],
    "channel-cancel": ["channel-cancel", "m1"],
    "channel-read": ["channel-read"],
    "docs-list": ["docs-list", "guide"],
    "docs-list --deleted": ["docs-list", "--deleted"],
    "docs-search": ["docs-search", "heron"],
    "docs-import": ["docs-import", "notes", "--no-wait"],
    "docs-export": ["docs-export", "exported"],
    "docs-show": ["docs-show", "guide/a.md"],
    "docs-show --version": ["docs-show", "guide/a.md", "--version", "1"],
    "docs-create": ["docs-create", "guide/a.md"],
    "docs-write": ["docs-write", "guide/a.md", "notes/SKILL.md"],
    "docs-move": ["docs-move", "guide", "guides"],
    "docs-mkdir": ["docs-mkdir", "guide"],
    "docs-delete": ["docs-delete", "guide/a.md"],
    "docs-delete --folder": ["docs-delete", "guide", "--folder"],
    "docs-history": ["docs-history", "guide/a.md"],
    "docs-restore": ["docs-restore", "1", "guide/a.md"],
    "models": ["models"],
    "models connection": ["models", "connection"],
    "models connect": ["models", "connect", "http://127.0.0.1:11434/v1"],
    "models disconnect": ["models", "disconnect"],
    "models test": ["models", "test", "http://127.0.0.1:11434/v1"],
    "models detect": ["models", "detect"],
    "settings-show agent-runtime": ["settings-show", "agent-runtime"],
    "settings-patch agent-runtime": ["settings-patch", "agent-runtime", '{"supervisorMaxSteps":64}'],
    "events": ["events"],
    "health": ["health"],
    "traces list": ["traces", "list"],
    "traces show": ["traces", "show", TRACE],
    "traces store": ["traces", "store"],
    "openapi": ["openapi"],
}


def test_every_route_of_the_api_has_a_verb_and_no_verb_is_left_without_its_route() -> None:
    routes = {
        (method, route.path) for route in make_api().routes if isinstance(route, APIRoute) for method in route.methods
    }

    assert routes == set(VERBS)


def test_every_route_under_api_is_among_those_enumerated() -> None:
    others = [r.path for r in make_api().routes if not isinstance(r, APIRoute)]  # type: ignore[attr-defined]

    assert not [path for path in others if path.startswith("/api")]


@pytest.mark.parametrize(("route", "verb"), VERBS.items(), ids=[f"{m} {p}" for m, p in VERBS])
def test_the_verb_of_a_route_really_asks_it(route: tuple[str, str], verb: str, peer: Peer, run: Run) -> None:
    prepare(peer, verb)

    result = run(*CALLS[verb])

    assert verb in [asked.verb for asked in peer.asked if asked.method == route[0]]
    assert verb in ENDLESS or result.exit_code == 0, result.output


# What it prints is JSON already; what a workspace's own command prints.
PRINTED_AS_IT_IS = {"openapi", "workspace prepare"}


def leaves(group: click.Group, context: click.Context, *above: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that does something, by its words."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, click.Context(command, parent=context, info_name=name), *above, name)
        if not isinstance(command, click.Group) or command.invoke_without_command:
            yield " ".join((*above, name)), command


def test_every_command_that_asks_the_api_can_answer_in_json() -> None:
    context = click.Context(main, info_name="popagent")
    asking = [(name, command) for name, command in leaves(main, context) if name.split()[0] not in local.commands]

    flags = {name: {flag for option in command.params for flag in option.opts} for name, command in asking}
    without = [name for name, known in flags.items() if "--json" not in known]

    assert set(without) == PRINTED_AS_IT_IS
    assert len(asking) > 70


@pytest.mark.parametrize("verb", sorted({*VERBS.values()} - PRINTED_AS_IT_IS))
def test_a_verb_answers_in_json_alone_when_it_is_asked_to(verb: str, peer: Peer, run: Run) -> None:
    prepare(peer, verb)

    result = run(*CALLS[verb], "--json")

    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines
    assert verb in ENDLESS or (result.exit_code, len(lines)) == (0, 1), result.output


def prepare(peer: Peer, verb: str) -> None:
    """Have at hand what the calls above need to come to an end."""
    peer.script.chunks = [c.start(message_id="a"), c.start_step(), c.finish_step(), c.finish()]
    Path("notes").mkdir()
    Path("notes/SKILL.md").write_text("---\nname: notes\ndescription: Notes.\n---\nWrite them.\n")
    peer.answers["docs-export"] = lambda _: Response(EMPTY_ZIP, media_type="application/zip")
    if verb in ENDLESS:
        # Once, then a refusal, which ends the command.
        peer.answers[verb] = lambda _: None if len(peer.asked) == 1 else ({"error": "no", "code": "x"}, 401)


def test_events_are_followed_of_every_topic_unless_some_are_named(peer: Peer, run: Run) -> None:
    peer.answers["events"] = lambda _: None if len(peer.asked) == 1 else ({"error": "no", "code": "x"}, 401)

    run("events")

    assert parse_topics(peer.asked[0].query["topics"]) == set(TOPICS)


def test_the_catalogue_says_what_the_commands_say_and_knows_every_local_one() -> None:
    context = click.Context(main, info_name="popagent")

    for name, entry in COMMANDS.items():
        command = main.get_command(context, name)  # type: ignore[attr-defined]
        assert command is not None
        assert command.name == name
        assert command.get_short_help_str(limit=200) == entry.help, name
    assert set(local.commands) <= set(COMMANDS)
