from __future__ import annotations

from typing import Any

from popagent_kit import json

from .conftest import Peer, Run, view

URL = "http://127.0.0.1:11434/v1"
KEY = "sk-of-a-person-7f3a"


def sent(peer: Peer, verb: str) -> dict[str, Any]:
    [asked] = [each for each in peer.asked if each.verb == verb and each.method in {"PUT", "POST"}]
    body: dict[str, Any] = asked.body
    return body


def test_a_key_is_read_from_standard_input_and_never_printed(peer: Peer, run: Run) -> None:
    result = run("models", "connect", URL, "--key", "stdin", stdin=f"{KEY}\n")

    assert sent(peer, "models connect") == {"revision": 1, "url": URL, "key": KEY}
    assert KEY not in result.output
    assert result.exit_code == 0


def test_a_key_is_asked_for_without_an_echo(peer: Peer, run: Run) -> None:
    result = run("models", "test", URL, "--key", "ask", "--model", "m", stdin=f"{KEY}\n")

    assert sent(peer, "models test") == {"url": URL, "model": "m", "key": KEY}
    assert KEY not in result.output


def test_without_a_key_option_the_stored_key_stays_and_none_removes_it(peer: Peer, run: Run) -> None:
    run("models", "connect", URL)
    kept = sent(peer, "models connect")
    peer.asked.clear()
    run("models", "connect", URL, "--key", "none")

    assert "key" not in kept
    assert sent(peer, "models connect")["key"] is None


def test_a_test_that_fails_says_why_and_ends_with_one(peer: Peer, run: Run) -> None:
    peer.answers["models test"] = view(
        "ConnectionTestView", **{"ok": False, "class": "refused", "sentence": "Nothing listens there.", "models": []}
    )

    told, as_json = run("models", "test", URL), run("models", "test", URL, "--json")

    assert (told.exit_code, told.stdout.strip()) == (1, "Nothing listens there.")
    assert (as_json.exit_code, json.loads(as_json.stdout.encode())["class"]) == (1, "refused")


def test_the_connection_is_shown_with_what_is_wrong(peer: Peer, run: Run) -> None:
    peer.answers["models connection"] = view(
        "ModelConnectionView", source="page", url=URL, hasKey=True, keyHint="7f3a", lastError="It does not answer."
    )

    result = run("models", "connection")

    assert "saved here or in the page" in result.stdout
    assert "yes, ending in 7f3a" in result.stdout
    assert "It does not answer." in result.stderr


def test_who_connects_a_server_that_does_not_answer_is_told_that_it_is_saved_and_how_to_take_it_back(
    peer: Peer, run: Run
) -> None:
    peer.answers["models connect"] = view(
        "ModelConnectionView", source="page", url=URL, lastError="It does not answer."
    )
    told, as_json = run("models", "connect", URL), run("models", "connect", URL, "--json")
    peer.answers["models connect"] = view("ModelConnectionView", source="page", url=URL, lastError=None)

    assert "It does not answer.\nIt is saved all the same." in told.stderr
    assert "models disconnect" in told.stderr
    assert as_json.stderr == ""
    assert "saved all the same" not in run("models", "connect", URL).stderr


def test_what_is_detected_is_listed_with_how_to_use_it(peer: Peer, run: Run) -> None:
    servers = [
        {"name": "Ollama", "url": URL, "models": ["a", "b"], "needsKey": False},
        {"name": "9Router", "url": "http://127.0.0.1:20128/v1", "models": [], "needsKey": True},
    ]
    peer.answers["models detect"] = {"items": servers, "nextCursor": None}
    found = run("models", "detect")
    peer.answers["models detect"] = {"items": [], "nextCursor": None}

    assert "a, b" in found.stdout
    assert "wants a key" in found.stdout
    assert "No model server answers" in run("models", "detect").stderr


def test_the_plain_command_still_lists_models(peer: Peer, run: Run) -> None:
    assert run("models", "--json").stdout == run("models", "list", "--json").stdout


def test_health_shows_what_to_do(peer: Peer, run: Run) -> None:
    problem = {
        "name": "model",
        "services": ["chat"],
        "reason": "None.",
        "stillWorks": "Reading.",
        "fix": "Connect one.",
    }
    peer.answers["health"] = view(
        "SuiteHealthView", checks={"postgres": "ok", "model": "None."}, problems=[{**problem, "decisive": False}]
    )

    result = run("health")

    assert "model: Reading. To do: Connect one." in result.stderr
