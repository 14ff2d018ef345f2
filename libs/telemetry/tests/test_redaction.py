from __future__ import annotations

import base64
import json
from time import perf_counter
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popagent_telemetry import (
    REDACTED,
    StreamRedactor,
    is_secret_name,
    redact,
    redact_value,
    redaction,
    register_secret,
)

BASIC = base64.b64encode(b"user:canary-pass").decode()
KEY_BLOCK = "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARYcanaryCANARY\nmore\n-----END OPENSSH PRIVATE KEY-----"

# (text, the part that must be gone)
CANARIES = [
    ("key sk-CANARY0123456789abcdef in a sentence", "CANARY0123456789abcdef"),
    ("sk-proj-CANARY_0123-456789", "CANARY_0123"),
    ("Authorization: Bearer CANARY.token-0123", "CANARY.token"),
    ("authorization=token CANARY0123", "CANARY0123"),
    ('{"Authorization":"Bearer CANARY0123456"}', "CANARY0123456"),
    ("curl -H 'bearer CANARY0123456789'", "CANARY0123456789"),
    (f"Basic {BASIC}", BASIC),
    (f"before {KEY_BLOCK} after", "CANARYcanaryCANARY"),
    (KEY_BLOCK.partition("\nmore")[0], "CANARYcanaryCANARY"),  # cut off before its END line
    (KEY_BLOCK.replace("\n", "\\n"), "CANARYcanaryCANARY"),
    ("-----BEGIN PGP PRIVATE KEY BLOCK-----\nCANARY\n-----END PGP PRIVATE KEY BLOCK-----", "CANARY"),
    ("postgresql://popagent:CANARY@127.0.0.1:5433/db", "CANARY"),
    ("nats://u:CAN@ARY:x@host:4222", "ARY"),
    ("redis://:CANARY@host", "CANARY"),
    ("https://CANARY0123456789abcdefgh@github.com/a/b", "CANARY0123456789"),
    ("api_key=CANARY0123", "CANARY0123"),
    ("?apiKey=CANARY0123&x=1", "CANARY0123"),
    ('{"password": "CANARY with blanks"}', "CANARY with blanks"),
    ("{'client_secret': 'CANARY 1'}", "CANARY 1"),
    ('"{\\"password\\": \\"CANARY inside a string\\"}"', "CANARY inside"),
    ("POPAGENT_SECRET_KEY=CANARY0123", "CANARY0123"),
    ("x-popagent-key: CANARY0123", "CANARY0123"),
    ("x-api-key: CANARY0123", "CANARY0123"),
    ("--password CANARY0123", "CANARY0123"),
    ("--api-key=CANARY0123", "CANARY0123"),
    ("Set-Cookie: sid=CANARY; Path=/", "CANARY"),
    ("ghp_CANARY0123456789abcdef", "CANARY0123456789"),
    ("github_pat_CANARY0123456789abcdef", "CANARY0123456789"),
    ("eyJhbGciOiJIUzI1NiJ9.CANARYcanary.sig", "CANARYcanary"),
    ("AKIACANARY0123456789", "CANARY0123456789"),
    ("xoxb-CANARY0123456789", "CANARY0123456789"),
    ("https://hooks.slack.com/services/T0/B0/CANARY0123", "CANARY0123"),
]


@pytest.mark.parametrize(("text", "canary"), CANARIES)
def test_no_credential_survives_in_any_of_its_forms(text: str, canary: str) -> None:
    padded = "long text before. " * 40 + text

    once = redact(text)

    assert canary not in once
    assert REDACTED in once
    assert canary not in redact(padded)
    assert redact(once) == once


@pytest.mark.parametrize("escape", ["\\n", "\\t", "\\\\n", "\\x0a", "\\u000a", "%0A", "%20"])
@pytest.mark.parametrize(("text", "canary"), CANARIES)
def test_the_last_letter_of_an_escape_is_no_part_of_a_word(text: str, canary: str, escape: str) -> None:
    assert canary not in redact(f"first line{escape}{text}{escape}last line")
    assert canary not in streamed([f"first line{escape}", *text, f"{escape}last line"])


@pytest.mark.parametrize(
    "text",
    [
        "Basic information about the task-runner",
        "input_tokens=120, outputTokens: 55",
        "max_tokens: 4096",
        "the token count is 12",
        "http://localhost:8420/api/chat/@me",
        "mail me at someone@example.org",
        '{"password": null, "token": true}',
        "risk-assessment of a desk-bound job",
        "token_count = 5",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "id 0190f5e1-7b3c-7c59-a3f0-6c1f2d9f0a11",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "Enter your password: it must have eight characters.",
        'token = os.environ["TOKEN"]',
        "self._token = make_token(request)",
        "connect(user, password=password, timeout=5)",
        "password: SecretStr | None = None",
        'throw new Error("password: too short")',
        '<input type="password" name="password" autocomplete="current-password" />',
        'MISSING_TOKEN = "There is no token of this name."',
        "PASSWORD=${POSTGRES_PASSWORD:?set it}",
        'export SECRET="$(head -c 32 /dev/urandom | base64)"',
        'dsn = f"postgresql://{user}:{password}@{host}/db"',
        "Authorization: see the documentation",
        "authorization = request.headers.get(name)",
        "the cookie: nobody sets one",
        "Bearer authentication is used",
        "class sk-fading-circle, npm_config_registry_address",
        "-----BEGIN PRIVATE KEY----- is how such a file begins, and what follows is its text.",
        "--password takes a word, --token the text of a file",
        "Token::Identifier2 == token==other",
        "credentials: ./config/credentials2.json",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == text


def streamed(pieces: list[str]) -> str:
    redactor = StreamRedactor()
    return "".join([*(redactor.feed(piece) for piece in pieces), redactor.end()])


@pytest.mark.parametrize(("text", "canary"), CANARIES)
@pytest.mark.parametrize("behind", ["", " and after", "\nmore", ", y"])
def test_a_credential_in_pieces_is_not_shown_either_and_the_text_is_the_same(
    text: str, canary: str, behind: str
) -> None:
    text = f"A line before.\nWords before it: {text}{behind}"
    whole = redact(text)

    assert streamed(list(text)) == whole
    for cut in range(len(text) - len(behind), 0, -3):
        assert streamed([text[:cut], text[cut:]]) == whole
    assert canary not in whole


@given(
    st.lists(st.sampled_from([text for text, _ in CANARIES] + ["token", "=", " ", "\n", '"', "x"]), max_size=6),
    st.data(),
)
def test_a_stream_gives_what_the_whole_text_gives(parts: list[str], data: st.DataObject) -> None:
    text, pieces = "".join(parts), []
    while text:
        size = data.draw(st.integers(1, 12))
        pieces.append(text[:size])
        text = text[size:]

    assert streamed(pieces) == redact("".join(pieces))


def test_words_are_not_held_back_until_the_next_one() -> None:
    redactor = StreamRedactor()

    assert [redactor.feed(piece) for piece in ("Good", " morn", "ing, the ", "token", " is")] == [
        "Good",
        " morn",
        "ing, the ",
        "token",
        " is",
    ]


def test_half_of_a_registered_value_waits_for_the_other_half(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", {})
    register_secret("tr0ub4dor", "mail")
    register_secret("tr0ub4dor-and-3", "other")
    redactor = StreamRedactor()

    shown = [redactor.feed(piece) for piece in ("It is tr0u", "b4dor", "-an", "d so on; tr0u", "ble, tr0ub4dor-and-3")]

    assert shown == ["It is ", "", "", "[redacted:mail]-and so on; ", "tr0uble, [redacted:other]"]


@pytest.mark.parametrize("value", ["tr0ub4dor", "aaaaaab", "abcabcabd"])
def test_a_registered_value_is_whole_again_wherever_it_was_parted(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", {})
    register_secret(value, "mail")
    text = f"It is a{value}c."

    for cut in range(len(text)):
        assert streamed([text[:cut], text[cut:]]) == redact(text)
    assert streamed(list(text)) == redact(text)


@pytest.mark.parametrize("value", ['quo"te\\slash ü', "a/b+c=d?e", "p%40ss%2Fword"])
def test_a_registered_value_is_found_in_json_and_in_a_url(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", {})
    register_secret(value, "x")

    for form in (
        value,
        json.dumps({"a": value}),
        json.dumps(value, ensure_ascii=False),
        quote(value, safe=""),
        unquote(value),
    ):
        assert "redacted:x" in redact(form), form


def test_a_registered_value_is_replaced_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_known", {})
    before = redact("xxtr0ub4dorxx")
    named = redact_value({"xxtr0ub4dorxx": 1})

    register_secret("tr0ub4dor", "mail")

    assert (before, named) == ("xxtr0ub4dorxx", {"xxtr0ub4dorxx": 1})
    assert redact("xxtr0ub4dorxx") == "xx[redacted:mail]xx"
    assert redact_value({"xxtr0ub4dorxx": 1}) == {"xx[redacted:mail]xx": 1}


def test_a_value_under_a_secret_name_is_replaced_whole_and_counts_stay() -> None:
    value = {"dbPassword": "a b", "usage": {"inputTokens": 5}, "list": ["sk-abcdefghijkl"], "tokens": "12 of 20"}

    assert redact_value(value) == {
        "dbPassword": REDACTED,
        "usage": {"inputTokens": 5},
        "list": [f"sk-{REDACTED}"],
        "tokens": "12 of 20",
    }
    assert not is_secret_name("maxTokenCount")


def test_endless_nesting_ends() -> None:
    value: list[object] = []
    for _ in range(5_000):
        value = [value]

    assert redact_value(value)


@pytest.mark.parametrize(
    "unit",
    ["eyJ", "sk-", "://a:", "-----BEGIN PRIVATE KEY", "password", "basic ", "key=:", "authorization:", "--token "],
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))

    started = perf_counter()
    redact(text)
    pieces = [text[at : at + 200] for at in range(0, len(text), 200)]
    streamed(pieces)

    assert perf_counter() - started < 5


@given(st.text(max_size=300), st.sampled_from(CANARIES))
def test_a_credential_is_found_after_any_text(noise: str, case: tuple[str, str]) -> None:
    text, canary = case

    assert canary not in redact(f"{noise}\n{text}")
