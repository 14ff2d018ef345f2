"""The NATS client, loaded without what it takes for WebSockets: 8 MB and a quarter of a second in every process."""

from __future__ import annotations

import sys

if "aiohttp" not in sys.modules:
    sys.modules["aiohttp"] = None  # type: ignore[assignment]  # the import system's word for "not to be had"
    try:
        import nats.aio.transport  # noqa: F401 (what it does not find now it does without)
    finally:
        del sys.modules["aiohttp"]
