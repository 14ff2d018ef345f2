"""What a hook may be, and when it is meant."""

from __future__ import annotations

import functools
from typing import Final

import re2

from popagent_kit.errors import InvalidInputError
from popagent_proto.chat.hooks import HookEvent, OnFailure

MAY_REFUSE: Final[frozenset[HookEvent]] = frozenset({"UserPromptSubmit", "PreToolUse", "SubagentStart", "Stop"})
NAMED: Final[frozenset[HookEvent]] = frozenset(
    {"PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart", "SubagentStop"}
)
EVERYTHING: Final = "*"


def checked_matcher(event: HookEvent, matcher: str) -> str:
    """Return the matcher.

    Raises:
        InvalidInputError: No expression of RE2, or the event has nothing to match; the field is `matcher`.
    """
    if matcher == EVERYTHING:
        return matcher
    if event not in NAMED:
        raise InvalidInputError(
            f"matcher must be * for {event}: only events of tools and specialists have a name", field="matcher"
        )
    try:
        _compiled(matcher)
    except re2.error:
        raise InvalidInputError(
            "matcher must be * or a regular expression of RE2, which has no look-around and no back-references",
            field="matcher",
        ) from None
    return matcher


def checked_on_failure(event: HookEvent, wanted: OnFailure | None) -> OnFailure:
    """Return what a failure means.

    Raises:
        InvalidInputError: `block` for an event that cannot be refused; the field is `onFailure`.
    """
    if event in MAY_REFUSE:
        return wanted or "block"
    if wanted == "block":
        raise InvalidInputError(f"onFailure must be allow for {event}: it is told afterwards", field="onFailure")
    return "allow"


def is_meant(matcher: str, subject: str) -> bool:
    """Tell whether the hook is meant by an event of this subject; the whole of it must match."""
    return matcher == EVERYTHING or _compiled(matcher).fullmatch(subject) is not None


@functools.lru_cache(maxsize=256)
def _compiled(matcher: str) -> re2._Regexp[str]:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(matcher, options)
