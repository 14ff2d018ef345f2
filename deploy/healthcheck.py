"""Exit code 0 when the service of this container is ready; its health port stands in its environment."""

import http.client
import os
import sys

TIMEOUT_S = 4.0


def is_ready(port: int) -> bool:
    """Ask `/readyz` on loopback."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


ports = [int(value) for name, value in os.environ.items() if name.endswith("_HEALTH_PORT")]
sys.exit(0 if all(is_ready(port) for port in ports) else 1)
