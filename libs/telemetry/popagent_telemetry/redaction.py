"""The one redaction: known values where they were resolved, patterns everywhere else (hostile input 35)."""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import re2

REDACTED: Final = "[redacted]"

# Shorter values would blank ordinary words.
SHORTEST_SECRET: Final = 6
DEEPEST: Final = 32

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """A pattern that runs only where one of `markers` (lower case) occurs; every pattern takes linear time."""

    markers: tuple[str, ...]
    pattern: re.Pattern[str]
    replacement: Replacement


_NAMES: Final = (
    r"(?:api[_.-]?key|access[_.-]?key|secret[_.-]?key|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|"
    r"x-[a-z0-9-]{1,40}-key|passw(?:or)?d|passwd|passphrase|pwd|secret|token|credentials?)"
)
_ALONE: Final = re.compile(rf"(?:^|[_.-]|(?<=[a-z])(?=[A-Z])){_NAMES}s?$|^authorization$|cookie$", re.I)
_HARMLESS_VALUE: Final = re.compile(r"[\d.,%]+|true|false|null|none|required|optional|string|str|missing", re.I)


def _unless_harmless(match: re.Match[str]) -> str:
    group = match.lastgroup or "bare"
    if _HARMLESS_VALUE.fullmatch(match[group]):
        return match[0]
    start, end = match.span(group)
    return match[0][: start - match.start()] + REDACTED + match[0][end - match.start() :]


def _basic_credentials(match: re.Match[str]) -> str:
    """Redact what decodes to `user:password`; "basic information" stays."""
    text = match[2]
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return match[0]
    return f"{match[1]}{REDACTED}" if b":" in decoded else match[0]


_PRIVATE_KEY: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"
_PRIVATE_KEY_BYTES: Final = re.compile(_PRIVATE_KEY.encode(), re.S)

RULES: Final = (
    Rule(("private key",), re.compile(_PRIVATE_KEY, re.S), REDACTED),
    Rule(
        ("authorization",),
        re.compile(r"(?i)(authorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?)(?:[a-z]{2,20} +)?[^\s\"',;]+"),
        rf"\1{REDACTED}",
    ),
    Rule(("cookie",), re.compile(r"(?i)(cookie[\"']?\s{0,8}:\s{0,8}[\"']?)[^\r\n\"']+"), rf"\1{REDACTED}"),
    Rule(("bearer",), re.compile(r"(?i)(\bbearer\s{1,8})[A-Za-z0-9._~+/=-]{8,}"), rf"\1{REDACTED}"),
    Rule(("basic",), re.compile(r"(?i)(\bbasic\s{1,8})([A-Za-z0-9+/]{6,}={0,2})"), _basic_credentials),
    Rule(("://",), re.compile(r"(://[^\s/@:\"'<>]*:)[^\s/\"'<>]+@"), rf"\1{REDACTED}@"),
    Rule(("://",), re.compile(r"(://)[^\s/@:\"'<>]{20,}@"), rf"\1{REDACTED}@"),
    Rule(("sk-",), re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{8,}"), f"sk-{REDACTED}"),
    Rule(
        ("eyj",),
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
        REDACTED,
    ),
    Rule(
        (
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "npm_",
            "hf_",
            "nvapi-",
            "pypi-",
            "gsk_",
            "xai-",
        ),
        re.compile(
            r"(?<![A-Za-z0-9])(gh[pousr]_|github_pat_|glpat-|npm_|hf_|nvapi-|pypi-|gsk_|xai-)[A-Za-z0-9_-]{16,}"
        ),
        rf"\1{REDACTED}",
    ),
    Rule(("xox", "xapp-"), re.compile(r"\b(xox[a-z]|xapp)-[A-Za-z0-9-]{10,}"), rf"\1-{REDACTED}"),
    Rule(("akia", "asia"), re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
    Rule(("aiza",), re.compile(r"\bAIza[0-9A-Za-z_-]{30,}"), REDACTED),
    Rule((":aa",), re.compile(r"\b[0-9]{8,12}:AA[A-Za-z0-9_-]{30,}"), REDACTED),  # Telegram bots
    Rule(
        ("hooks.slack.com/", "/webhooks/"),
        re.compile(r"(hooks\.slack\.com/services/|/api/webhooks/[0-9]{1,24}/)[A-Za-z0-9/_-]{8,}"),
        rf"\1{REDACTED}",
    ),
    Rule(
        ("--pass", "--token", "--secret", "--api", "--pwd"),
        re.compile(r"(?i)(--(?:[a-z]{1,20}-)?(?:password|passwd|pwd|token|secret|api-key)[ =]{1,4})(?!-)[^\s\"']{4,}"),
        rf"\1{REDACTED}",
    ),
    Rule(
        ("key", "passw", "pwd", "passphrase", "secret", "token", "credential"),
        re.compile(
            rf"(?i){_NAMES}[A-Za-z0-9_]{{0,40}}\\?[\"']?\s{{0,8}}(?:=>|:=|[:=])\s{{0,8}}"
            r"(?:\\?[\"](?P<double>[^\"\\\r\n]+)|\\?['](?P<single>[^'\\\r\n]+)|(?P<bare>[^\s\"'\\,;&(){}\[\]<>]{4,}))"
        ),
        _unless_harmless,
    ),
)

# One linear pass that answers "no" for most long texts; forty substring searches would cost twenty times as much.
_SUSPECT: Final = re2.compile(
    "(?i)" + "|".join(sorted({re2.escape(marker) for rule in RULES for marker in rule.markers}))
)
LONG_TEXT: Final = 400
# Of names up to this length it is remembered what they are.
LONGEST_NAME: Final = 100

_known: dict[str, str] = {}


def register_secret(value: str | None, name: str = "secret") -> None:
    """Make every later `redact` replace `value` by `[redacted:name]`; values under six characters are not taken."""
    if value and len(value.strip()) >= SHORTEST_SECRET:
        _known[value.strip()] = f"[redacted:{name}]"
        _field.cache_clear()


def redact(text: str) -> str:
    """Return `text` without credentials: registered values, then keys, tokens, private keys, URL passwords."""
    for value, label in tuple(_known.items()):
        if value in text:
            text = text.replace(value, label)
    if len(text) > LONG_TEXT and _SUSPECT.search(text) is None:
        return text
    lowered = text.lower()
    for rule in RULES:
        for marker in rule.markers:
            if marker in lowered:
                text = rule.pattern.sub(rule.replacement, text)
                break
    return text


def without_private_keys(content: bytes) -> bytes:
    """Return a file's content with every line of a private key redacted, for those who then show single lines of it.

    The number of lines stays the same.
    """
    if b"PRIVATE KEY" not in content:
        return content
    line = REDACTED.encode()
    return _PRIVATE_KEY_BYTES.sub(lambda match: b"\n".join([line] * (match[0].count(b"\n") + 1)), content)


def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a credential (`apiKey`, `db_password`; not `inputTokens`)."""
    return _ALONE.search(name) is not None and not name.lower().endswith("tokens")


@functools.lru_cache(maxsize=1_024)
def _field(name: str) -> tuple[str, bool]:
    """Return the redacted name of a field, and whether it holds a credential; the same names come again and again."""
    return redact(name), is_secret_name(name)


def redact_value(value: Any, _depth: int = 0) -> Any:
    """Return a copy of a JSON-like value, redacted; the text under a secret-sounding key is replaced whole."""
    if isinstance(value, str):
        return redact(value)
    if _depth >= DEEPEST:
        return REDACTED
    if isinstance(value, Mapping):
        return dict(_redacted_item(key, item, _depth) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [redact_value(item, _depth + 1) for item in value]
    return value


def _redacted_item(key: Any, item: Any, depth: int) -> tuple[Any, Any]:
    if not isinstance(key, str):
        return key, redact_value(item, depth + 1)
    name, secret = _field(key) if len(key) <= LONGEST_NAME else (redact(key), is_secret_name(key))
    return name, REDACTED if secret and isinstance(item, str) and item else redact_value(item, depth + 1)
