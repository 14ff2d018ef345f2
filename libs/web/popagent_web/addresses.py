"""Where requests may go: origins as an operator writes them, and the addresses that a name may lead to."""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Final, NamedTuple
from urllib.parse import urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NUMBERS: Final = re.compile(r"[0-9a-fx]+(\.[0-9a-fx]+){0,3}")

# Prefixes behind which the last four bytes are an IPv4 address that a gateway, or this machine, goes to.
_CARRIERS: Final = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")))
# Not of the public network, whatever Python of an older day says.
_NOT_PUBLIC: Final = tuple(
    map(ipaddress.ip_network, ("64:ff9b:1::/48", "3fff::/20", "5f00::/16", "fec0::/10", "192.88.99.0/24"))
)
# Where clouds give credentials to whoever asks, beside the link-local network.
_OF_CLOUDS: Final = frozenset(
    map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)


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
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError("must be an http or https URL with a host, and a port of at most 65535") from None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or port == 0:
        raise ValueError("must be an http or https URL")
    if "@" in parts.netloc:
        raise ValueError("must not hold a user name or password")
    return Origin(parts.scheme, parts.hostname.lower().removesuffix("."), port or DEFAULT_PORTS[parts.scheme])


def may_be_reached(address: str, host: str) -> bool:
    """Tell whether a request for `host`, which is allowed, may go to this address.

    A name may lead to the public network only, since whoever holds the name decides where it leads; `localhost` leads
    to this machine, and an address that the operator wrote leads to itself.
    """
    found = _address(address)
    named = literal(host)
    if named is not None:
        return found == named
    if host == "localhost":
        return found.is_loopback
    return found.is_global and is_of_a_server(found) and not any(found in network for network in _NOT_PUBLIC)


def may_be_own(address: str, host: str) -> bool:
    """As `may_be_reached`, for a server of the operator's own: its name may lead to a private network, too.

    Never where clouds give credentials to whoever asks: the link-local network, and some addresses besides.
    """
    if literal(host) is not None or host == "localhost":
        return may_be_reached(address, host)
    return is_of_a_server(_address(address))


def is_of_a_server(address: Address) -> bool:
    """Tell whether a server of the operator's own can be at this address."""
    return not (address.is_multicast or address.is_unspecified or _gives_credentials(address))


def gives_credentials(address: str) -> bool:
    """Tell whether clouds give credentials at this address to whoever asks: nobody's server is looked for there."""
    return _gives_credentials(_address(address))


def _gives_credentials(address: Address) -> bool:
    return address.is_link_local or address in _OF_CLOUDS


def spelled(host: str) -> Address | None:
    """Return the address that the system takes `host` for, as in 2130706433 or 0x7f.1; None when it is a name."""
    found = literal(host)
    if found is not None or not _NUMBERS.fullmatch(host):
        return found
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def literal(host: str) -> Address | None:
    """Return the address that `host` is, None when it is a name."""
    try:
        return _address(host)
    except ValueError:
        return None


def _address(text: str) -> Address:
    found = ipaddress.ip_address(text.partition("%")[0])
    return found if isinstance(found, ipaddress.IPv4Address) else _carried(found)


def _carried(address: ipaddress.IPv6Address) -> Address:
    """Return the IPv4 address that packets for this one end at, or else itself."""
    if address.is_loopback or address.is_unspecified:
        return address
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(address.packed[-4:])
    return address.sixtofour or address
