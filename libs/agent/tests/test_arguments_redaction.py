from __future__ import annotations

import json

import pytest

from popagent_agent.arguments_redaction import ArgumentsRedactor, plain_json

KEY = "sk-CANARY0123456789abcdef"
SPELLED = "".join(f"\\u{ord(char):04x}" for char in KEY)


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"text": f"key {KEY} here"}),
        json.dumps({"text": "?"}).replace("?", SPELLED),
        r'{"url": "https:\/\/me:CANARY0123@host\/p", "a": "b"}',
        json.dumps({"text": 'password = "CANARY0123"\n', "path": "a\\\\b\u00e9\U0001f600"}),
    ],
)
def test_no_fragment_shows_a_credential_and_the_rest_means_the_same(written: str) -> None:
    for size in range(1, 12):
        redactor = ArgumentsRedactor()
        shown = "".join(redactor.feed(written[at : at + size]) for at in range(0, len(written), size))

        assert "CANARY" not in shown
        assert "CANARY" not in json.dumps(json.loads(shown))


def test_what_is_spelled_means_what_it_meant() -> None:
    value = {"a": '\\u0041 \\\\ " / \n \u00e9 \x7f', "b": "\\\\u0073k"}

    assert json.loads(plain_json(json.dumps(value))) == value
