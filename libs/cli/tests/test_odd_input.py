from __future__ import annotations

import pytest

from .conftest import Peer, Run


def test_an_argument_that_is_no_text_is_told_and_nothing_is_sent(peer: Peer, run: Run) -> None:
    told = [
        run("chat", "caf\udce9"),
        run("sessions", "list", "\udcff"),
        run("settings-patch", "agent-runtime", "\udc80"),
    ]

    assert [result.exit_code for result in told] == [2, 2, 2]
    assert all("not valid text" in result.stderr for result in told)


@pytest.mark.parametrize("key", ["clé", "two\nlines", " padded-key"])
def test_a_key_that_no_header_can_carry_is_told_as_such(
    peer: Peer, run: Run, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("POPAGENT_API_KEY", key)

    told = run("models")

    assert told.exit_code == 1
    assert "POPAGENT_API_KEY is no key" in told.stderr
    assert key not in told.stderr


@pytest.mark.parametrize("command", [["task-create", "example"], ["channel-post"], ["channel-edit", "m1"]])
def test_bytes_that_are_no_text_are_replaced_where_words_are_piped_in(command: list[str], peer: Peer, run: Run) -> None:
    result = run(*command, "-", stdin=b"caf\xe9 au lait")

    assert result.exit_code == 0, result.output
    assert "caf\ufffd au lait" in peer.asked[-1].body.values()
