"""The scripted model server in a process of its own: benchmarks and end-to-end tests must not share its interpreter."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from typing import Any, Self

import orjson

from popagent_testing.model_replies import Reply


class ModelProcess:
    """Starts the server and scripts it over HTTP; it ends with this process, even one killed with -9."""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Start the process and wait until it listens."""
        command = [sys.executable, "-m", "popagent_testing.model_server", "--until-stdin-closes", *self.arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the scripted model server did not start")
        self.url = str(orjson.loads(line)["url"])
        return self

    def stop(self) -> None:
        """End the process; may be called twice."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            for pipe in (self.process.stdin, self.process.stdout):
                if pipe is not None:
                    pipe.close()
            self.process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def script(self, *replies: Reply) -> None:
        """Add replies to the queue."""
        self._call("POST", "replies", [reply.to_json() for reply in replies])

    def set_default(self, reply: Reply | None) -> None:
        """Replace the answer to requests that no scripted reply fits; None is the echo."""
        self._call("PUT", "default", reply.to_json() if reply else None)

    def set_models(self, **fields: Any) -> None:
        """Replace what `GET /v1/models` answers; the fields are those of `ModelList`."""
        self._call("PUT", "models", fields)

    def release(self) -> None:
        """Let every held reply go on."""
        self._call("POST", "release")

    def drop_connections(self) -> None:
        """Close every other open connection, as a crashed server would."""
        self._call("POST", "drop")

    def reset(self) -> None:
        """Forget script, log and model list."""
        self._call("DELETE", "")

    def requests(self) -> list[dict[str, Any]]:
        """Return the chat requests so far: method, path, headers, body, at, outcome."""
        return list(self._call("GET", "requests")["requests"])

    def held(self) -> int:
        """Return how many replies wait for `release`."""
        return int(self._call("GET", "requests")["held"])

    def _call(self, method: str, path: str, value: Any = None) -> Any:
        address = f"{self.url.removesuffix('/v1')}/_script/{path}".rstrip("/")
        body = None if method in {"GET", "DELETE"} else orjson.dumps(value)
        request = urllib.request.Request(address, body, method=method, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return orjson.loads(response.read())
