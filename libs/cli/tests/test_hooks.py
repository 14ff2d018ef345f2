from __future__ import annotations

from .conftest import Peer, Run, view

HOOK = {**view("HookView", id="h1", revision=4, enabled=True, hasSecret=False), "name": "Guard"}


def test_a_hook_is_added_with_what_was_said_and_its_secret_comes_from_standard_input(peer: Peer, run: Run) -> None:
    words = ["hooks", "add", "Guard", "--event", "PreToolUse", "--to", "http://127.0.0.1:9000/x"]
    peer.answers["hooks add"] = HOOK

    plain = run(*words)
    first = peer.asked[-1].body
    run(*words, "--matcher", "write", "--order", "1", "--secret", "stdin", stdin="a-long-enough-secret\n")

    assert "Guard is added: h1" in plain.output
    assert first == {"name": "Guard", "event": "PreToolUse", "url": "http://127.0.0.1:9000/x"}
    assert peer.asked[-1].body == {**first, "matcher": "write", "orderIndex": 1, "secret": "a-long-enough-secret"}


def test_a_program_is_added_with_its_arguments_and_a_hook_is_one_of_both(peer: Peer, run: Run) -> None:
    peer.answers["hooks add"] = HOOK
    words = ["hooks", "add", "Guard", "--event", "Stop"]

    run(*words, "--", "/hooks/guard.py", "--strict", "a b")
    sent = peer.asked[-1].body
    neither, both = run(*words), run(*words, "--to", "http://x/", "/hooks/guard.py")

    assert sent == {"name": "Guard", "event": "Stop", "kind": "command", "argv": ["/hooks/guard.py", "--strict", "a b"]}
    assert [neither.exit_code, both.exit_code] == [1, 1]
    assert len(peer.asked) == 1


def test_a_change_is_sent_with_the_stored_revision_and_told(peer: Peer, run: Run) -> None:
    peer.answers["hooks"] = {"items": [HOOK], "nextCursor": None}
    peer.answers["hooks patch"] = {**HOOK, "enabled": False, "revision": 5}

    changed = run("hooks", "patch", "h1", '{"enabled":false}')
    unsigned = run("hooks", "patch", "h1", "--secret", "none")
    unknown = run("hooks", "patch", "h2", '{"enabled":false}')
    nothing = run("hooks", "patch", "h1")

    assert peer.asked[1].body == {"revision": 4, "enabled": False}
    assert "enabled  true → false" in changed.output
    assert peer.asked[3].body == {"revision": 4, "secret": None}
    assert "not signed" in unsigned.output
    assert "There is no hook h2" in unknown.output
    assert "Say what to change" in nothing.output
    assert [unknown.exit_code, nothing.exit_code] == [1, 1]


def test_a_trial_tells_a_refusal_from_a_failure(peer: Peer, run: Run) -> None:
    trial = view("HookTrialView", status="denied", decision="deny", reason="No.", output="{}", durationMs=3)
    peer.answers["hooks"] = {"items": [HOOK], "nextCursor": None}
    peer.answers["hooks test"] = trial
    refused = run("hooks", "test", "h1")
    peer.answers["hooks test"] = {**trial, "status": "timeout", "reason": "It did not answer within 300 ms."}
    failed = run("hooks", "test", "h1")

    assert (refused.exit_code, failed.exit_code) == (0, 1)
    assert "denied, refuses" in refused.output
    assert "300 ms" in failed.output


def test_lists_say_what_to_do_when_they_are_empty(peer: Peer, run: Run) -> None:
    peer.answers["hooks"] = peer.answers["hooks runs"] = {"items": [], "nextCursor": None}

    assert "hooks add NAME" in run("hooks").output
    assert "No hook ran here" in run("hooks", "runs", "s1", "--turn", "t1").output
    assert peer.asked[-1].query["turnId"] == "t1"


def test_a_hook_is_named_or_those_there_are_are_told(peer: Peer, run: Run) -> None:
    peer.answers["hooks"] = {"items": [HOOK], "nextCursor": None}

    run("hooks", "delete", "guard")
    deleted = peer.asked[-1]
    unknown = run("hooks", "test", "nope")

    assert (deleted.method, deleted.path) == ("DELETE", "/api/hooks/h1")
    assert unknown.exit_code == 1
    assert "There is no hook nope. There are: Guard." in unknown.stderr
    assert peer.asked[-1].verb == "hooks"
