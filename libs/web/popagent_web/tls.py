"""Which certificates are trusted."""

from __future__ import annotations

import functools
import ssl


@functools.cache
def trusted(*, trust_env: bool) -> ssl.SSLContext:
    """Return the one TLS context of the process: reading the certificates takes a tenth of a second."""
    import httpx2  # noqa: PLC0415 (finds the certificates of every system; most servers need none)

    return httpx2.create_ssl_context(trust_env=trust_env)
