"""What a hook may be, where it may be, and what it is told: rules without a server."""

from __future__ import annotations

import json

import pytest

from popagent_chat.settings import ChatSettings
from popagent_kit.errors import ConfigurationError, InvalidInputError
from popagent_runs.hooks.content import LARGEST_BYTES, bounded, bounded_text
from popagent_runs.hooks.origins import checked_url, parse_origins
from popagent_runs.hooks.rules import checked_matcher, checked_on_failure, is_meant

ALLOWED = parse_origins("https://guard.example.com, http://127.0.0.1:9000,http://[::1]:9000/")


@pytest.mark.parametrize(
    "url",
    [
        "https://guard.example.com",
        "https://GUARD.example.com:443/a/b?c=d",
        "https://guard.example.com./a",
        "http://127.0.0.1:9000/x",
        "http://[::1]:9000/x",
    ],
)
def test_a_url_of_an_allowed_origin_is_accepted(url: str) -> None:
    assert checked_url(url, ALLOWED) == url


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "guard.example.com", "//guard.example.com/", "ftp://guard.example.com/", "file:///etc/passwd"),
        *("http://guard.example.com/", "https://guard.example.com:8443/", "https://guard.example.com.evil.org/"),
        *("https://evil.org/https://guard.example.com", "https://guard.example.com@evil.org/", "https://[::1"),
        *("https://evil.org#@guard.example.com/", "https://guard.example.com/#part", "http://127.0.0.1:9001/"),
        *("http://localhost:9000/", "http://2130706433:9000/", "http://127.1:9000/", "https://guard.example.com/a b"),
        *("https://guard.example.com\\@evil.org/", "https://guard.example.com:0/", "https://gu\u0430rd.example.com/"),
        *("https://u:p@guard.example.com/", "https://guard.example.com/\nHost: evil.org", "http://:9000/"),
        *("http://0177.0.0.1:9000/", "http://0x7f.0.0.1:9000/", "http://0x7f000001:9000/", "http://017700000001:9000/"),
        *("http://[::ffff:127.0.0.1]:9000/", "http://[::ffff:7f00:1]:9000/", "http://[0:0:0:0:0:0:0:1]:9000/"),
        *(
            "http://[::1%25lo]:9000/",
            "http://[::ffff:a9fe:a9fe]/",
            "http://169.254.169.254/",
            "http://127\u30020.0.1:9000/",
        ),
        *("data:,x", "http://127.0.0.1:9000%2f@evil.org/", "http://[127.0.0.1]:9000/", "http:///127.0.0.1:9000/"),
        *("https://guard.example.com:99999/", "gopher://127.0.0.1:9000/", "http://127.0.0.1:9000\t/"),
    ],
)
def test_every_other_url_is_refused_by_its_field(url: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        checked_url(url, ALLOWED)

    assert refused.value.field == "url"


@pytest.mark.parametrize("text", ["guard.example.com", "https://a.example/path", "https://a.example?x", "http://u@a/"])
def test_a_list_of_origins_that_holds_none_stops_the_start(text: str) -> None:
    with pytest.raises(ConfigurationError, match="POPAGENT_HOOK_ORIGINS"):
        ChatSettings.load({"POPAGENT_HOOK_ORIGINS": f"https://fine.example,{text}"}, {})


@pytest.mark.parametrize(
    ("matcher", "subject", "meant"),
    [
        ("*", "anything", True),
        ("write", "write", True),
        ("write", "writeAll", False),
        ("write|edit", "edit", True),
        ("write|edit", "xedit", False),
        ("web-.*", "web-search", True),
        ("(?i)READ", "read", True),
        ("a|b|", "", True),
    ],
)
def test_the_whole_name_must_match(matcher: str, subject: str, *, meant: bool) -> None:
    assert is_meant(checked_matcher("PreToolUse", matcher), subject) is meant


@pytest.mark.parametrize("matcher", ["(", "[a", "a(?=b)", r"(a)\1", "x{5000}", "((x{100}){100}){100}", "**"])
def test_what_is_no_expression_of_linear_time_is_refused(matcher: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        checked_matcher("PreToolUse", matcher)

    assert refused.value.field == "matcher"


def test_a_hostile_expression_and_a_hostile_name_cost_nothing() -> None:
    assert not is_meant("(a+)+b", "a" * 200)
    assert not is_meant("(.*)*x", "y" * 200)


def test_events_without_a_name_have_nothing_to_match_and_told_events_nothing_to_block() -> None:
    with pytest.raises(InvalidInputError, match=r"matcher must be \* for Stop"):
        checked_matcher("Stop", "write")
    with pytest.raises(InvalidInputError, match="onFailure must be allow for PostToolUse"):
        checked_on_failure("PostToolUse", "block")

    assert (checked_on_failure("PreToolUse", None), checked_on_failure("SessionEnd", None)) == ("block", "allow")
    assert checked_on_failure("Stop", "allow") == "allow"
    assert checked_on_failure("SubagentStart", None) == "block"
    assert checked_matcher("SubagentStop", "re.*") == "re.*"


@pytest.mark.parametrize(
    "value",
    [
        {"text": "x" * 1_000_000},
        {"text": "\x01" * 1_000_000},
        {"many": ["item " * 20] * 10_000},
        {f"name {number}": "v" * 500 for number in range(5_000)},
        {"deep": [[[["\U0001f40d" * 3_000] * 60] * 60]]},
        {"wide": [list(range(300)) for _ in range(300)]},
    ],
)
def test_whatever_is_told_is_bounded_and_still_json(value: object) -> None:
    shown = bounded(value)

    data = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()
    assert 0 < len(data) <= LARGEST_BYTES


def test_secrets_and_what_no_database_takes_are_left_out() -> None:
    shown = bounded({"apiKey": "abcdefgh", "text": "token=ghp_0123456789abcdefghij\x00.", "plain": [1, None, "a"]})

    assert shown["plain"] == [1, None, "a"]
    assert "abcdefgh" not in str(shown)
    assert "\x00" not in str(shown)
    assert "ghp_0123456789" not in bounded_text(b"\xff ghp_0123456789abcdefghij \x00")
    assert len(bounded_text("\u20ac" * 20_000).encode()) <= LARGEST_BYTES
