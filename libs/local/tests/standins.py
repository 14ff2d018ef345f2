"""A suite with real databases and bus whose two services are tiny: they answer 200 and show their environment.

Run as `python standins.py [--parent PID]`; POPAGENT_HOME says where.
"""

from __future__ import annotations

import http.server
import os
import sys
import threading
from collections.abc import Callable

from popagent_kit import json
from popagent_kit.exec_shim import shim
from popagent_local.infrastructure import Infrastructure
from popagent_local.programs import Program, answers_ok
from popagent_local.services import LOCAL_SERVICES, SuiteValues, environment
from popagent_local.up import up


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps(dict(os.environ)) if self.path == "/environment" else b"ok"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return None


def programs(values: SuiteValues, infrastructure: Infrastructure, port: Callable[[str], int]) -> list[Program]:
    made = []
    for service in (row for row in LOCAL_SERVICES if row.name in {"gateway", "chat"}):
        health_port = port(service.name)
        ports = [str(health_port), *([str(values.port)] if service.name == "gateway" else [])]
        made.append(
            Program(
                service.name,
                lambda ports=ports: shim([sys.executable, __file__, "serve", *ports]),  # type: ignore[misc]
                answers_ok(health_port, "/readyz"),
                env=environment(service, values, infrastructure, health_port),
                port=health_port,
                essential=True,
            )
        )
    return made


def serve(ports: list[int]) -> None:
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", port), Answer) for port in ports]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    servers[0].serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve([int(port) for port in sys.argv[2:]])
    else:
        parent = int(sys.argv[sys.argv.index("--parent") + 1]) if "--parent" in sys.argv else None
        sys.exit(up(follow=False, parent=parent, services=programs))
