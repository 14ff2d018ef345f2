from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import popagent_bus
print("aiohttp" in sys.modules, popagent_bus.no_websockets.nats.aio.transport.aiohttp)
import aiohttp
"""


def test_the_bus_does_not_load_what_nats_wants_for_websockets_and_others_still_can() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "None"]
