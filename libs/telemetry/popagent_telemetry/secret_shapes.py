"""What credentials look like in a text, and what only looks like one; every search takes linear time."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import re2

from popagent_telemetry.secret_values import is_code, is_random, is_secret_in_quotes, is_secret_without_quotes

Span = tuple[int, int]
"""Where a credential begins and ends."""

# No shape looks further back than this from where its credential begins.
LONGEST_PREFIX: Final = 256
LONGEST_KEY: Final = 16_384
LONG_WORD: Final = 12
# Nothing of these names but a credential; the rest of a name follows, such as `_PROD`.
NAMES: Final = (
    r"(?:api[_.-]?key|access[_.-]?key|secret[_.-]?key|private[_.-]?key|signing[_.-]?key|encryption[_.-]?key|"
    r"x-[a-z0-9-]{1,40}-key|passw(?:or)?d|passwd|passphrase|pwd|secret|token|credentials?)"
)
_NAMED: Final = (
    rf"(?i:(?P<name>{NAMES}[A-Za-z0-9_]{{0,40}}))\\{{0,3}}[\"']?[ \t]{{0,8}}"
    r"(?P<sign>=>|:=|[:=](?![:=]))[ \t]{0,8}"
)
_NAME_MARKERS: Final = ("key", "passw", "pwd", "passphrase", "secret", "token", "credential")


# A letter or digit that ends an escape of JSON, of source code or of a URL belongs to no word.
_ESCAPED: Final = r"(?<=\\[abfnrtv])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})"


def _start(characters: str = r"\w") -> str:
    """Return an expression of where a word of such characters begins."""
    return rf"(?:(?<![{characters}])|{_ESCAPED})"


def _always(_: re.Match[str]) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Shape:
    """A credential behind a prefix that stays, sought only where one of `markers` (lower case) occurs.

    It consists of `characters`, at least so many, before `after`; `is_meant` looks at what was found once more.
    """

    markers: tuple[str, ...]
    whole: re.Pattern[str]
    prefix: re.Pattern[str]
    run: re.Pattern[str]
    is_meant: Callable[[re.Match[str]], bool]

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where credentials of this shape are."""
        for match in self.whole.finditer(text):
            if self.is_meant(match):
                yield match.span("value")

    def unfinished(self, text: str) -> int | None:
        """Return where one begins that goes on at the end of `text`, or may turn out to be one by what follows."""
        run = self.run.match(text[::-1])
        begin = len(text) - (run.end() if run else 0)
        match = self.prefix.search(text, max(0, begin - LONGEST_PREFIX))
        while match is not None and match.end() < begin:
            match = self.prefix.search(text, match.start() + 1)
        return None if match is None else match.end()


def _shape(
    markers: tuple[str, ...],
    prefix: str,
    characters: str,
    least: int,
    *,
    after: str = "",
    most: str = "",
    is_meant: Callable[[re.Match[str]], bool] = _always,
) -> Shape:
    whole = re.compile(rf"{prefix}(?P<value>{characters}{{{least},{most}}}){after}")
    return Shape(markers, whole, re.compile(prefix), re.compile(f"{characters}*"), is_meant)


@dataclass(frozen=True, slots=True)
class NamedShape:
    """A credential behind a name that says so, in quotes or without."""

    markers: tuple[str, ...]

    def spans(self, text: str) -> Iterator[Span]:
        """Yield where credentials of this shape are."""
        for named in _names_in(text):
            match = _NAMED_VALUE.match(text, named.start())
            if match is None:
                continue
            kind = match.lastgroup or "bare"
            if _is_bare_secret(match) if kind == "bare" else is_secret_in_quotes(match["name"], match[kind]):
                yield match.span(kind)

    def unfinished(self, text: str) -> int | None:
        """Return where one begins that goes on at the end of `text`, or may turn out to be one by what follows."""
        for named in _names_in(text):
            for begun in _NAMED_BEGUN:
                if (found := begun.match(text, named.start())) is not None:
                    return found.start("value")
        return None


def _names_in(text: str) -> Iterable[re.Match[str]]:
    return _NAMED_ONLY.finditer(text) if _NAMED_FAST.search(text) is not None else ()


def _is_bare_secret(match: re.Match[str]) -> bool:
    text, (begin, end) = match.string, match.span("bare")
    is_tight = match.end("sign") == begin and not text[match.start("sign") - 1].isspace()
    return is_secret_without_quotes(
        match["name"], match["bare"], text[end : end + 1], assigned=is_tight and match["sign"] == "="
    )


def _is_random(match: re.Match[str]) -> bool:
    return is_random(match["value"])


def _is_sk(match: re.Match[str]) -> bool:
    """Tell it from names such as `sk-fading-circle`."""
    return _is_random(match) or max(map(len, re.split("[_-]", match["value"]))) >= LONG_WORD


def _is_no_code(match: re.Match[str]) -> bool:
    return not is_code(match["value"])


def _is_jwt(match: re.Match[str]) -> bool:
    return _JWT_PAYLOAD.search(match["value"]) is not None


def _is_authorization(match: re.Match[str]) -> bool:
    value = match["value"]
    if match.string[match.end() : match.end() + 1] in ("(", "[") or is_code(value):
        return False
    return match["scheme"] is not None or is_random(value)


def _is_argument(match: re.Match[str]) -> bool:
    return not is_code(match["value"]) and (match["sign"] == "=" or is_random(match["value"]))


def _is_cookie(match: re.Match[str]) -> bool:
    name, sign, value = match["value"].partition("=")
    return bool(sign and value.strip()) and re.fullmatch(r"[^\s;,(){}]{1,100}", name) is not None


def _is_basic(match: re.Match[str]) -> bool:
    """Tell whether it decodes to `user:password`; "basic information" stays."""
    text = match["value"]
    try:
        return b":" in base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


_VENDORS: Final = tuple(
    f"{vendor}{sign}"
    for sign, vendors in (
        ("_", ("ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "npm", "hf", "gsk", "sk_live", "rk_live", "sk_test")),
        ("-", ("glpat", "nvapi", "pypi", "xai")),
    )
    for vendor in vendors
)
_JWT_PAYLOAD: Final = re.compile(r"\.[A-Za-z0-9_-]{4}")
_BARE: Final = r"[^\s\"'\\,;&(){}\[\]<>`]"
_QUOTED: Final = {
    "double": ('"', r"(?:[^\"\\\r\n]|\\[^\r\n])"),
    "single": ("'", r"(?:[^'\\\r\n]|\\[^\r\n])"),
    "escaped": (r"\\{1,7}[\"']", r"[^\"'\\\r\n]"),
}
_VALUES: Final = "|".join(f"{opening}(?P<{kind}>{value}+)" for kind, (opening, value) in _QUOTED.items())
_NAMED_VALUE: Final = re.compile(rf"{_NAMED}(?:{_VALUES}|(?P<bare>{_BARE}{{4,}}))")
_NAMED_BEGUN: Final = [
    *(re.compile(rf"{_NAMED}{opening}(?P<value>{value}*\\?)\Z") for opening, value in _QUOTED.values()),
    re.compile(rf"{_NAMED}(?P<value>{_BARE}*)\Z"),
]
_NAMED_ONLY: Final = re.compile(_NAMED)
# Says twenty times as fast that there is no name with a value; it knows no look-ahead and finds some too many.
_NAMED_FAST: Final = re2.compile(_NAMED.replace("(?![:=])", "").replace("?P<name>", "?:").replace("?P<sign>", "?:"))
_SCHEME: Final = r"(?P<scheme>(?i:bearer|basic|token|digest|negotiate|apikey|hawk)[ ]{1,8})?"

SHAPES: Final[tuple[Shape | NamedShape, ...]] = (
    _shape(
        ("authorization",),
        rf"(?i:authorization)\\{{0,3}}[\"']?[ \t]{{0,8}}[:=][ \t]{{0,8}}\\{{0,3}}[\"']?{_SCHEME}",
        r"[^\s\"',;\\(){}\[\]<>]",
        4,
        is_meant=_is_authorization,
    ),
    _shape(
        ("cookie",),
        r"(?i:cookie)[\"']?[ \t]{0,8}:[ \t]{0,8}[\"']?",
        r"[^\r\n\"']",
        3,
        is_meant=_is_cookie,
    ),
    _shape(("bearer",), rf"{_start()}(?i:bearer)[ \t]{{1,8}}", r"[A-Za-z0-9._~+/=-]", 8, is_meant=_is_random),
    _shape(("basic",), rf"{_start()}(?i:basic)[ \t]{{1,8}}", r"[A-Za-z0-9+/=]", 6, is_meant=_is_basic),
    _shape(("://",), r"://[^\s/@:\"'<>]{0,150}:", r"[^\s/\"'<>]", 1, after="@", is_meant=_is_no_code),
    _shape(("://",), r"://", r"[^\s/@:\"'<>]", 20, after="@", is_meant=_is_no_code),
    _shape(("sk-",), rf"{_start('A-Za-z0-9')}sk-", r"[A-Za-z0-9_-]", 8, is_meant=_is_sk),
    _shape(("eyj",), rf"{_start('A-Za-z0-9_-')}eyJ", r"[A-Za-z0-9_.-]", 14, is_meant=_is_jwt),
    _shape(
        _VENDORS,
        rf"{_start('A-Za-z0-9')}(?:{'|'.join(_VENDORS)})",
        r"[A-Za-z0-9_-]",
        16,
        is_meant=_is_random,
    ),
    _shape(("xox", "xapp-"), rf"{_start()}(?:xox[a-z]|xapp)-", r"[A-Za-z0-9-]", 10, is_meant=_is_random),
    _shape(("akia", "asia"), rf"{_start()}(?:AKIA|ASIA)", r"[0-9A-Z]", 16, most="16", after=r"\b"),
    _shape(("aiza",), rf"{_start()}AIza", r"[0-9A-Za-z_-]", 30),
    _shape((":aa",), rf"{_start()}[0-9]{{8,12}}:AA", r"[A-Za-z0-9_-]", 30),  # Telegram bots
    _shape(
        ("hooks.slack.com/", "/webhooks/"),
        r"(?:hooks\.slack\.com/services/|/api/webhooks/[0-9]{1,24}/)",
        r"[A-Za-z0-9/_-]",
        8,
    ),
    _shape(
        ("--pass", "--token", "--secret", "--api", "--pwd"),
        r"(?i:--(?:[a-z]{1,20}-)?(?:password|passwd|pwd|token|secret|api-key))(?P<sign>=|[ ]{1,4})(?!-)",
        r"[^\s\"'\\]",
        4,
        is_meant=_is_argument,
    ),
    NamedShape(_NAME_MARKERS),
)

_KEY_BEGINS: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_ENDS: Final = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
# Lines of base64 with whatever a transport puts between them: blanks, quotes, signs of a diff, numbers, `\n` as text.
_BETWEEN: Final = r"(?:[\s\"',+>|#*:-]|\\{1,4}[nrt]|\b[0-9]{1,6}\b)"
_KEY_BODY: Final = re.compile(
    rf"(?:\s{{0,4}}[A-Za-z-]{{2,20}}: [^\r\n]{{0,120}}){{0,5}}(?:{_BETWEEN}{{0,60}}[A-Za-z0-9/+=]{{12,}})+"
)


def private_keys(text: str) -> Iterator[Span]:
    """Yield where private keys are between the lines that begin and end them; one without an end is its base64."""
    ends = _KEY_ENDS.finditer(text)
    end = next(ends, None)
    done = 0
    for begin in _KEY_BEGINS.finditer(text):
        start = begin.end()
        if start < done:
            continue
        while end is not None and end.start() < start:
            end = next(ends, None)
        if end is not None and end.start() - start <= LONGEST_KEY:
            done = end.start()
        else:
            body = _KEY_BODY.match(text, start)
            done = start if body is None else body.end()
        if done > start:
            yield start, done


def unfinished_key(text: str) -> int | None:
    """Return where a private key begins whose end is not there yet."""
    last = None
    for last in _KEY_BEGINS.finditer(text, max(0, len(text) - LONGEST_KEY)):
        if _KEY_ENDS.search(text, last.end()) is None:
            return last.end()
    return None
