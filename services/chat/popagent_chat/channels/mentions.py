"""Whom a text names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol

# Code is quoted, and says nothing to anybody.
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.S)
# Not within a word or an address: `me@example.org` names nobody.
_NAMED: Final = re.compile(r"(?<![\w@./-])@([A-Za-z0-9][A-Za-z0-9_-]{0,63})")
MOST: Final = 20


class Named(Protocol):
    """Who can be named: by id, or by name with hyphens for blanks."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def name(self) -> str:
        """What people call it."""
        ...


def mentioned(text: str, known: Iterable[Named]) -> list[str]:
    """Return the ids of those that the text names outside of code, each once, in the order of the text."""
    ids: dict[str, str] = {}
    for each in known:
        ids.setdefault("-".join(each.name.lower().split()), each.id)
        ids[each.id.lower()] = each.id
    found = (ids.get(name.lower().rstrip("-_")) for name in _NAMED.findall(_CODE.sub(" ", text)))
    return list(dict.fromkeys(name for name in found if name is not None))[:MOST]
