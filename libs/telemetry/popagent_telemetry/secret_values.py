"""Whether what stands behind a name such as `token` is a credential, or code, a word, a number, a sentence."""

from __future__ import annotations

import re
from typing import Final

_NO_SECRET: Final = re.compile(
    r"[\d.,%_]+[A-Za-z]{0,2}|true|false|null|nil|none|undefined|required|optional|missing|string|bytes|number|boolean|"
    r"u?int\d*|float\d*|sha\d+|md5|utf-?\d+|base\d+|v\d+|[*.x…_-]+",
    re.I,
)
_DIGITS: Final = re.compile(r"\d{6,}")
# Values that stand for another one: $NAME, ${NAME}, {name}, <name>, %s, also behind a word.
_STANDS_FOR: Final = re.compile(
    r"[A-Za-z_. -]{0,20}"
    r"(?:\$?\{[^{}]*\}+|\{\{[^{}]*\}\}|<[^<>]*>|\$\(?[A-Za-z_][A-Za-z0-9_]*\)?|%\(?\w*\)?[srd]|\[redacted[^\]]*\])"
    r"[A-Za-z_. -]{0,20}|\{[^}]*|\?.*|\$+\(.*|[*.x…_-]+"
)
_WORDS: Final = re.compile(r"[^\W\d_]+(?:[ ._/-]+[^\W\d_]+)*[._-]?")
_IDENTIFIERS: Final = re.compile(r"[A-Za-z_]\w{0,40}(?:\??\.[A-Za-z_]\w{0,40})*[.:!?]?")
_PLACE: Final = re.compile(r"(?:https?://|[a-z]{2,10}://|\.{0,2}/|~/|[A-Za-z]:\\)[^\s]*")
_BASE64: Final = re.compile(r"(?=[^\d]*\d)[A-Za-z0-9+/]{32,}={0,2}")
_SENTENCE_ENDS: Final = (".", "?", "!", ":", "…")
_NAMES_ITSELF: Final = re.compile(r"pass|pwd|secret|token|key|credential|\bpin\b", re.I)
# Names that end so hold something about a credential.
_ABOUT: Final = re.compile(
    r"(?:^|_|(?<=[a-z0-9])(?=[A-Z]))(?i:count|type|name|url|uri|file|path|dir|folder|field|len|length|limit|budget|size|"
    r"max|min|expiry|expires|ttl|age|id|class|pattern|regex|re|env|var|variable|hint|label|placeholder|prompt|required|"
    r"header|index|usage|bytes|chars|characters|format|kind|state|status|source|error|policy|rule|manager|store|"
    r"provider|service|factory|reader|parser|encryption|algorithm|method|mode|scope|note|text|title|message|description|help)s?$"
)
_OTHER_WORDS: Final = re.compile(r"token(?:s|i[sz]\w*)$|secretar\w*$|passworde?d?less$", re.I)
_PASSWORD: Final = re.compile(r"pass|pwd", re.I)
LONG_WORD: Final = 16
# Behind an identifier.
CALLS: Final = ("(", "[", "{", "<")


def is_random(text: str) -> bool:
    """Tell whether a text with a telling prefix is no word: it has a digit, or capitals among small letters."""
    body = text[1:]
    return any(char.isdigit() for char in text) or (body != body.lower() and body != body.upper())


def is_code(text: str) -> bool:
    """Tell whether a text stands for a value that is elsewhere."""
    return _STANDS_FOR.fullmatch(text) is not None


def is_secret_in_quotes(name: str, value: str) -> bool:
    """Tell whether a text in quotes behind `name` is a credential."""
    if _is_about(name) or _is_no_secret(name, value):
        return False
    words = value.split()
    if len(words) > 1 and (value.rstrip().endswith(_SENTENCE_ENDS) or _NAMES_ITSELF.search(value)):
        return False
    if _WORDS.fullmatch(value) is None:
        return True
    if _PASSWORD.search(name):
        return not _NAMES_ITSELF.search(value)
    return len(value) >= LONG_WORD and len(words) == 1 and value.isalpha()


def is_secret_without_quotes(name: str, value: str, following: str, *, assigned: bool) -> bool:
    """Tell whether a run of characters behind `name` is a credential.

    `following` is the character behind it; `assigned` tells of an equals sign without blanks, as in an environment.
    """
    if _is_about(name) or _is_no_secret(name, value):
        return False
    if _IDENTIFIERS.fullmatch(value) is None:
        return True
    if following in CALLS:
        return False
    has_digits = any(char.isdigit() for char in value)
    if assigned and following not in (",", ")", ";"):
        return has_digits or not (_NAMES_ITSELF.search(value) or "." in value)
    return has_digits and "." not in value.rstrip(".!?")


def _is_about(name: str) -> bool:
    return _ABOUT.search(name) is not None or _OTHER_WORDS.search(name) is not None


def _is_no_secret(name: str, value: str) -> bool:
    if _NO_SECRET.fullmatch(value):
        return not (_PASSWORD.search(name) and _DIGITS.fullmatch(value))
    return is_code(value) or (_PLACE.fullmatch(value) is not None and not _is_base64(value))


def _is_base64(text: str) -> bool:
    """Tell whether a text that begins with a slash is no path."""
    return _BASE64.fullmatch(text) is not None and all(map(text.__ne__, (text.lower(), text.upper())))
