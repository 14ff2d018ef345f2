from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse

from popagent_cli import events as following_events
from popagent_kit import json
from popagent_local.ports import free_port
from popagent_local.state import HomeLock, SuiteState

from .conftest import Peer, Run, view

UNKNOWN = ({"error": "There is nothing with this id.", "code": "not_found"}, 404)


@pytest.mark.parametrize(
    ("words", "verb", "empty"),
    [
        (("sessions", "list"), "sessions list", "There are no sessions yet. Begin one: popagent chat"),
        (("sessions", "list", "--archived"), "sessions list", "Nothing is archived."),
        (("workspace", "list"), "workspace list", "popagent workspace add FOLDER"),
        (("traces", "list"), "traces list", "No trace is stored yet"),
    ],
)
def test_an_empty_list_explains_itself(peer: Peer, run: Run, words: tuple[str, ...], verb: str, empty: str) -> None:
    peer.answers[verb] = {"items": [], "nextCursor": None}

    result = run(*words)

    assert result.exit_code == 0
    assert result.stdout == ""
    assert empty in result.stderr


def test_the_list_of_workspaces_says_where_they_lie_and_how_another_gets_there(peer: Peer, run: Run) -> None:
    peer.answers["workspace list"] = view("WorkspaceList", root="/home/me/my work\x1b[2J")

    result = run("workspace", "list")

    assert "The workspace root is /home/me/my work where popagent runs." in result.stderr
    assert "popagent workspace add URL" in result.stderr
    assert "/home/me" not in result.stdout


def test_columns_are_aligned_and_safe(peer: Peer, run: Run) -> None:
    row = view("SessionList")["items"][0]
    rows = [{**row, "id": "a", "title": "Ein\x1b[2J 家 title"}, {**row, "id": "long-id", "runningTurnId": None}]
    peer.answers["sessions list"] = {"items": rows, "nextCursor": None}

    lines = run("sessions", "list").stdout.splitlines()

    assert lines[0].startswith("SESSION  LAST ACTIVE")
    assert lines[1].startswith("a        2026-01-0")
    assert lines[1].endswith("answering  Ein 家 title")
    assert lines[2].startswith("long-id  ")


def test_the_list_marks_what_did_not_come_to_an_answer(peer: Peer, run: Run) -> None:
    row = {**view("SessionList")["items"][0], "runningTurnId": None}
    states = ("failed", "interrupted", "stopped", None)
    rows = [{**row, "id": str(state), "title": "t", "lastTurnState": state} for state in states]
    peer.answers["sessions list"] = {"items": rows, "nextCursor": None}

    lines = run("sessions", "list").stdout.splitlines()[1:]

    assert [line.split()[3:-1] for line in lines] == [["failed"], ["interrupted"], [], []]


def test_a_search_says_where_it_matched(peer: Peer, run: Run) -> None:
    row, hit = view("SessionList")["items"][0], view("MessageHits")["items"][0]
    rows = [{**row, "match": {**hit, "excerpt": "of a heron\x1b[2J"}}, {**row, "match": None}]
    peer.answers["sessions list"] = {"items": rows, "nextCursor": None}
    peer.answers["sessions find"] = {"items": [{**hit, "excerpt": "of a heron"}], "nextCursor": None}

    listed = run("sessions", "list", "--search", "a heron").stdout.splitlines()
    found = run("sessions", "find", "s1", "a", "heron").stdout.splitlines()

    assert [asked.query["q"] for asked in peer.asked] == ["a heron"] * 2
    assert listed[1].endswith("“of a heron”")
    assert not listed[2].endswith("”")
    assert found[0].startswith("MESSAGE")
    assert found[1].endswith("You   of a heron")


def test_a_search_that_finds_nothing_says_so(peer: Peer, run: Run) -> None:
    for verb, words in (("list", ["--search", "x"]), ("find", ["s1", "x"])):
        peer.answers[f"sessions {verb}"] = {"items": [], "nextCursor": None}

        assert run("sessions", verb, *words).stderr == "Nothing holds these words.\n"


def test_a_list_goes_over_as_many_pages_as_it_takes(peer: Peer, run: Run) -> None:
    row = view("SessionList")["items"][0]
    pages = {None: ([row] * 200, "c1"), "c1": ([row] * 40, None)}

    def page(asked: object) -> dict[str, object]:
        items, cursor = pages[asked.query.get("cursor")]  # type: ignore[attr-defined]
        return {"items": items, "nextCursor": cursor}

    peer.answers["sessions list"] = page

    result = run("sessions", "list", "--limit", "500", "--json")

    assert len(json.loads(result.stdout)["items"]) == 240
    assert [asked.query["limit"] for asked in peer.asked] == ["200", "200"]


def test_settings_are_patched_in_the_users_form_and_a_higher_ceiling_warns_of_the_time_limit(
    peer: Peer, run: Run
) -> None:
    stored = view("AgentRuntimeView", supervisorMaxSteps=32, taskTimeoutMs=1_800_000)
    peer.answers["settings-show agent-runtime"] = stored
    peer.answers["settings-patch agent-runtime"] = {**stored, "supervisorMaxSteps": 64, "revision": 2}

    result = run("settings-patch", "agent-runtime", '{"supervisorMaxSteps":64}')

    assert peer.asked[-1].body == {"supervisorMaxSteps": 64}
    assert result.stdout == "supervisorMaxSteps  32 → 64\n"
    assert "ends after taskTimeoutMs (1800000, that is 30 min)" in result.stderr
    assert """popagent settings-patch agent-runtime '{"taskTimeoutMs":3600000}'""" in result.stderr


def test_a_patch_that_raises_no_ceiling_or_the_limit_too_warns_of_nothing(peer: Peer, run: Run) -> None:
    stored = view("AgentRuntimeView", supervisorMaxSteps=32, taskTimeoutMs=1_800_000)
    peer.answers["settings-show agent-runtime"] = stored
    changed = {**stored, "supervisorMaxSteps": 64, "taskTimeoutMs": 7_200_000}
    peer.answers["settings-patch agent-runtime"] = lambda asked: {**stored, **asked.body}

    both = run("settings-patch", "agent-runtime", '{"supervisorMaxSteps":64,"taskTimeoutMs":7200000}')
    same = run("settings-patch", "agent-runtime", '{"supervisorMaxSteps":32}')

    assert (both.stderr, same.stderr) == ("", "")
    assert "Nothing changed" in same.stdout
    assert changed["taskTimeoutMs"] == 7_200_000


@pytest.mark.parametrize("changes", ["{supervisorMaxSteps:64}", "[]", "{}", "64"])
def test_what_is_no_patch_is_refused_with_an_example(peer: Peer, run: Run, changes: str) -> None:
    result = run("settings-patch", "agent-runtime", changes)

    assert result.exit_code == 1
    assert """settings-patch agent-runtime '{"supervisorMaxSteps":64}'""" in result.stderr
    assert not peer.asked


def test_an_unready_suite_is_told_by_text_json_and_exit_code(peer: Peer, run: Run) -> None:
    checks = {"postgres": "ok", "observability-postgres": "connection refused"}
    peer.answers["health"] = (view("SuiteHealthView", ready=False, checks=checks), 503)

    text, as_json = run("health"), run("health", "--json")

    assert (text.exit_code, as_json.exit_code) == (1, 1)
    assert "observability-postgres  not ok  connection refused" in text.stdout
    assert json.loads(as_json.stdout)["ready"] is False


def test_a_missing_key_is_told_and_a_given_one_is_sent(peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    peer.key = "secret"

    without = run("models")
    monkeypatch.setenv("POPAGENT_API_KEY", "secret")
    with_key = run("models")

    assert without.exit_code == 1
    assert "Set POPAGENT_API_KEY" in without.stderr
    assert with_key.exit_code == 0


def test_a_change_by_somebody_else_is_told(peer: Peer, run: Run) -> None:
    conflict = {"error": "revision conflict", "code": "revision_conflict", "session": view("SessionView")}
    peer.answers["sessions rename"] = (conflict, 409)

    result = run("sessions", "rename", "s1", "A title")

    assert result.exit_code == 1
    assert "Look at it again and repeat the command." in result.stderr


def test_every_change_of_a_session_sends_the_stored_revision(peer: Peer, run: Run) -> None:
    peer.answers["sessions show"] = view("SessionView", revision=7)

    changes = ("archive s1", "restore s1", "rename s1 T", "shorten s1 --keep 1", "branch s1 m9")
    for words in changes:
        assert run("sessions", *words.split()).exit_code == 0

    bodies = [asked.body for asked in peer.asked if asked.body]
    assert bodies == [
        {"revision": 7, "archived": True},
        {"revision": 7, "archived": False},
        {"revision": 7, "title": "T"},
        {"revision": 7, "messages": [{"id": "m1"}]},
        {"revision": 7, "messageId": "m9"},
    ]


def test_history_prints_what_the_export_answers_made_safe(peer: Peer, run: Run) -> None:
    files = {"markdown": "# About\n\n## You\n\ntext 1\x1b[2J\n", "json": '{"session":{},"messages":["\u202e"]}'}
    peer.answers["history"] = lambda asked: PlainTextResponse(files[asked.query["format"]])

    text, as_json = run("history", "s1"), run("history", "s1", "--json")

    assert text.stdout == "# About\n\n## You\n\ntext 1\n"
    assert as_json.stdout == '{"session":{},"messages":["\\u202e"]}\n'


def test_shortening_counts_every_page(peer: Peer, run: Run) -> None:
    def message(number: int) -> dict[str, object]:
        return {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": "x"}]}

    newest = view("SessionView", messages=[message(3), message(4)], previousCursor="c", revision=0)
    oldest = view("SessionView", messages=[message(1), message(2)])
    peer.answers["sessions show"] = lambda asked: oldest if asked.query.get("before") == "c" else newest

    assert run("sessions", "shorten", "s1", "--keep", "3").exit_code == 0

    assert peer.asked[-1].body == {"revision": 0, "messages": [{"id": f"m{number}"} for number in (1, 2, 3)]}


def test_a_trace_is_drawn_as_a_waterfall_in_which_children_stand_below_their_parents(peer: Peer, run: Run) -> None:
    def span(span_id: str, parent: str | None, start: str, took: float | None, **more: object) -> dict[str, object]:
        at = f"2026-01-02T03:04:0{start}Z"
        base = view("TraceView")["spans"][0]
        return {
            **base,
            "spanId": span_id,
            "parentId": parent,
            "startedAt": at,
            "durationMs": took,
            "name": span_id,
        } | more

    spans = [
        span("tool", "turn", "5.000", 500, status="error", statusText="no such file"),
        span("root", None, "4.000", 4_000, status="ok"),
        span("turn", "root", "4.500", None, status="running"),
        span("lost", "elsewhere", "6.000", 1),
    ]
    peer.answers["traces show"] = view("TraceView", spans=spans, logs=[], truncated=False)

    lines = run("traces", "show", "0" * 32).stdout.splitlines()[3:]

    assert [line[:8].rstrip() for line in lines] == ["root", "  turn", "    tool", "lost"]
    assert "running" in lines[1]
    assert lines[2].endswith("no such file")
    assert "4.0 s" in lines[0]


def test_a_trace_is_listed_by_how_its_turn_ended(peer: Peer, run: Run) -> None:
    row = view("TraceList")["items"][0]
    states = [("ok", "stopped"), ("ok", "completed"), ("error", None), ("running", "interrupted")]
    rows = [{**row, "status": status, "turnState": ended} for status, ended in states]
    peer.answers["traces list"] = {"items": rows, "nextCursor": None}

    lines = run("traces", "list").stdout.splitlines()[1:]

    told = ["stopped", "ok", "error", "interrupted"]
    assert [word for line, word in zip(lines, told, strict=True) if f"  {word}  " in line] == told


def test_a_trace_without_an_id_is_that_of_the_newest_turn(peer: Peer, run: Run) -> None:
    row = view("TraceList")["items"][0]
    rows = [{**row, "traceId": digit * 32, "turnId": "t"} for digit in "21"]
    peer.answers["traces list"] = {"items": rows, "nextCursor": None}

    run("traces", "show")

    listed, shown = peer.asked[-2:]
    assert listed.query["turnsOnly"] == "true"
    assert shown.path.endswith("2" * 32)


def test_events_go_on_from_where_the_line_broke(peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following_events, "AGAIN_S", 0.01)
    peer.answers["events"] = lambda _: None if len(peer.asked) < 3 else ({"error": "No.", "code": "x"}, 401)

    result = run("events", "--topics", "turns", "--json")

    assert peer.asked[1].headers["last-event-id"] == "a-2"
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["topic"] for line in lines] == ["ready", "turns", "ready", "turns"]
    assert lines[1]["data"]["event"] == {"state": "completed"}


def test_nobody_at_the_address_is_told_by_who_should_be_there(run: Run, home: Path) -> None:
    port = free_port()

    elsewhere = run("models", "--url", f"http://127.0.0.1:{port}")

    assert elsewhere.exit_code == 1
    assert elsewhere.stderr.startswith(f"Error: Nothing answers at http://127.0.0.1:{port}.")


@pytest.mark.parametrize("url", ["127.0.0.1:8420", "ftp://x", "http://", "http://x:99999", "http://x/path"])
def test_what_is_no_address_is_a_mistake_on_the_command_line(run: Run, url: str) -> None:
    result = run("models", "--url", url)

    assert result.exit_code == 2
    assert "should look like http://127.0.0.1:8420" in result.stderr


def test_an_id_cannot_name_another_path(peer: Peer, run: Run) -> None:
    result = run("sessions", "show", "../workspaces")

    assert result.exit_code == 2
    assert not peer.asked


def test_an_unknown_session_is_told(peer: Peer, run: Run) -> None:
    peer.answers["sessions show"] = UNKNOWN

    result = run("sessions", "show", "s1")

    assert (result.exit_code, result.stderr) == (1, "Error: There is nothing with this id.\n")


def test_something_else_at_the_address_is_told(peer: Peer, run: Run) -> None:
    peer.answers["models"] = ("<html>", 502)

    result = run("models")

    assert "answered 502, and not as popagent does" in result.stderr


def command_line(home: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "POPAGENT_HOME": str(home), "HOME": str(home), **variables}
    command = [sys.executable, "-c", "from popagent_cli.main import main; main(prog_name='popagent')", *args]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False, timeout=30)


def test_the_suite_of_this_home_is_found_by_its_state_file(peer: Peer, home: Path) -> None:
    with HomeLock(home):
        SuiteState(home=str(home), address=peer.url, phase="ready").write(home)
        found = command_line(home, "models")
    left = command_line(home, "models", POPAGENT_PORT=str(free_port()))

    assert found.returncode == 0, found.stderr
    assert left.returncode == 1
    assert left.stderr.startswith("Error: popagent is not running. Start it with ")


def test_help_and_version_load_neither_http_nor_models_nor_event_loop() -> None:
    code = (
        "import sys; from popagent_cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('httpx2', 'pydantic', 'asyncio', 'fastapi') if name in sys.modules])"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.splitlines()[-1] == "[]"
    assert "Run it on this machine:" in result.stdout


def test_version_is_that_of_the_package(run: Run) -> None:
    result = run("--version")

    assert result.stdout.startswith("popagent 0.")


def test_a_workspace_is_renamed_and_forgotten_by_its_name(peer: Peer, run: Run) -> None:
    row = {**view("WorkspaceList")["items"][0], "id": "w1", "name": "House", "path": "code/house", "revision": 4}
    peer.answers["workspace list"] = {"items": [row], "nextCursor": None}
    peer.answers["workspace rename"] = {**row, "name": "Ho\x1b[2Jme"}

    renamed = run("workspace", "rename", "house", "Home")
    asked = peer.asked[-1]
    gone = run("workspace", "delete", "House")

    assert (asked.path, asked.body) == ("/api/workspaces/w1", {"revision": 4, "name": "Home"})
    assert renamed.stdout == "w1 is now called Home\n"
    assert (peer.asked[-1].method, peer.asked[-1].path) == ("DELETE", "/api/workspaces/w1")
    assert gone.stdout == "House is forgotten; its folder code/house stays\n"


def test_a_workspace_in_use_is_not_forgotten_and_says_why(peer: Peer, run: Run) -> None:
    reason = "2 sessions refer to this workspace, archived and ended ones counted. Delete them first."
    peer.answers["workspace delete"] = ({"error": reason, "code": "workspace_in_use", "sessions": 2}, 409)

    result = run("workspace", "delete", "example")

    assert (result.exit_code, result.stdout) == (1, "")
    assert reason in result.stderr


def test_a_workspace_that_was_added_is_used_by_its_name_unless_another_has_it(peer: Peer, run: Run) -> None:
    made = {**view("WorkspaceView"), "id": "w2", "name": "The house"}
    peer.answers["workspace add"] = made
    peer.answers["workspace list"] = {"items": [made], "nextCursor": None}

    alone = run("workspace", "add", "code/house")
    peer.answers["workspace list"] = {"items": [made, {**made, "id": "w1", "name": "the House"}], "nextCursor": None}
    one_of_two = run("workspace", "add", "code/house")

    assert "chat --workspace 'The house'" in alone.stdout
    assert "chat --workspace w2" in one_of_two.stdout
