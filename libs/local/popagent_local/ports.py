"""Loopback ports: a preferred one when it is free, else any."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from typing import Final

LOOPBACK: Final = "127.0.0.1"
# Below what systems give to outgoing connections: one of those could take the port before its server listens.
QUIET_RANGE: Final = range(15_000, 32_000)
ATTEMPTS: Final = 64


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Tell whether a server could listen on `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port(preferred: int | None = None, host: str = LOOPBACK, *, avoid: Iterable[int] = ()) -> int:
    """Return `preferred` when nobody listens there, else a free port that is not in `avoid`."""
    taken = set(avoid)
    if preferred and preferred not in taken and is_free(preferred, host):
        return preferred
    for _ in range(ATTEMPTS):
        port = random.choice(QUIET_RANGE)  # noqa: S311 (spreads processes that choose at once, guards nothing)
        if port not in taken and is_free(port, host):
            return port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port
