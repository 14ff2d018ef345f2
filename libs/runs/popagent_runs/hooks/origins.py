"""Where hooks may be posted to: the exact origins that the operator named."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import one_line
from popagent_web.addresses import Origin, origin_of

MOST_ORIGINS: Final = 100


def parse_origins(text: str) -> frozenset[Origin]:
    """Return the origins of a list with commas.

    Raises:
        ValueError: One has a path, or is no origin.
    """
    found = set()
    for each in filter(None, (item.strip() for item in text.split(","))):
        try:
            origin = origin_of(each)
        except ValueError as error:
            raise ValueError(f"{one_line(each, 80)} {error}") from None
        if each.split("://", 1)[1].rstrip("/").count("/") or urlsplit(each).query or urlsplit(each).fragment:
            raise ValueError(f"{one_line(each, 80)} must end behind its host and port")
        found.add(origin)
    if len(found) > MOST_ORIGINS:
        raise ValueError(f"at most {MOST_ORIGINS} origins")
    return frozenset(found)


def checked_url(url: str, allowed: frozenset[Origin]) -> str:
    """Return `url` when it may be posted to.

    Raises:
        InvalidInputError: It is no such URL, or its origin is not allowed; the field is `url`.
    """
    try:
        origin = origin_of(url)
    except ValueError as error:
        raise InvalidInputError(f"url {error}", field="url") from None
    if urlsplit(url).fragment:
        raise InvalidInputError("url must not have a part behind #", field="url")
    if origin not in allowed:
        raise InvalidInputError(
            f"{one_line(str(origin), 200)} is not among the origins that the operator allows. "
            "Add it to POPAGENT_HOOK_ORIGINS in .env beside ./popagent, and start popagent again.",
            field="url",
        )
    return url
