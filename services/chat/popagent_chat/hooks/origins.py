"""Where hooks may be posted to: the exact origins that the operator named, at addresses that the name may have."""

from __future__ import annotations

import ipaddress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import one_line

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
MOST_ORIGINS: Final = 100

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Origin(NamedTuple):
    """Scheme, host in lower case, port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


def origin_of(url: str) -> Origin:
    """Return the origin of an http(s) URL.

    Raises:
        ValueError: It is none, or holds a name or password; the message says what is wrong.
    """
    if not url.isascii() or any(char.isspace() or not char.isprintable() for char in url) or "\\" in url:
        raise ValueError("must hold printable ASCII characters alone")
    parts = urlsplit(url)
    port = parts.port
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port == 0:
        raise ValueError("must be an http or https URL")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password")
    return Origin(parts.scheme, parts.hostname.lower().removesuffix("."), port or DEFAULT_PORTS[parts.scheme])


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
            "Add it to POPAGENT_HOOK_ORIGINS and start again.",
            field="url",
        )
    return url


def may_be_reached(address: str, host: str) -> bool:
    """Tell whether a request for `host`, which is allowed, may go to this address.

    A name may lead to the public network only, since whoever holds the name decides where it leads; `localhost` leads
    to this machine, and an address that the operator wrote leads to itself.
    """
    found = _address(address)
    named = _literal(host)
    if named is not None:
        return found == named
    if host == "localhost":
        return found.is_loopback
    return found.is_global and not found.is_multicast


def _literal(host: str) -> Address | None:
    try:
        return _address(host)
    except ValueError:
        return None


def _address(text: str) -> Address:
    found = ipaddress.ip_address(text.partition("%")[0])
    return found.ipv4_mapped or found if isinstance(found, ipaddress.IPv6Address) else found
