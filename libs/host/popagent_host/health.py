"""How the process is: `/livez`, `/readyz` and `/metrics` on a loopback port, and the same view over the bus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from popagent_kit.errors import AppError, ConfigurationError
from popagent_proto.common import HealthView
from popagent_telemetry import metrics, redact

LOOPBACK: Final = "127.0.0.1"
OK: Final = "ok"
CHECK_TIMEOUT_S: Final = 2.0
# Probes that come at the same time share one look.
FRESH_S: Final = 0.5
TICK_S: Final = 60.0

Check = Callable[[], Awaitable[str | None]]
"""Returns when all is well, with what it found if that is worth telling; raises AppError with the reason when not."""

READY: Final = metrics.gauge("popagent_ready", "1 when the service is ready")
log = logging.getLogger(__name__)


class Health:
    """Collects checks; ready when the start is over and every decisive check is."""

    def __init__(self, service: str, version: str, failed: asyncio.Future[None] | None = None) -> None:
        self.service = service
        self.version = version
        self.state = "starting"
        self._failed = failed
        self._checks: dict[str, tuple[Check, bool]] = {}
        self._seen: HealthView | None = None
        self._seen_at = 0.0
        self._changes = 0
        self._seen_changes = 0
        self._look = asyncio.Lock()

    def add(self, name: str, check: Check, *, decisive: bool = True) -> None:
        """Add a check; one that is not decisive is shown and does not make the service unready."""
        self._checks[name] = (check, decisive)
        self._changes += 1

    def move_to(self, state: str) -> None:
        """Say where the process is in its life: starting, ok, stopping."""
        self.state = state
        self._changes += 1

    def hang(self) -> str | None:
        """Say why this process should be started anew, or None: it may be unready for long and live all the same."""
        failed = self._failed
        if failed is not None and failed.done() and not failed.cancelled():
            return f"a part that must not end has ended: {failed.exception()}"
        return None

    async def view(self) -> HealthView:
        """Return how the service is, at most half a second old."""
        loop = asyncio.get_running_loop()
        async with self._look:
            if self._seen is None or self._seen_changes != self._changes or loop.time() - self._seen_at > FRESH_S:
                self._seen = await self._ask()
                self._seen_at = loop.time()
                READY.set(self._seen.ready)
            return self._seen

    async def _ask(self) -> HealthView:
        while True:
            # What changes while the checks run, a state or a check more, would make a view of two moments.
            self._seen_changes = self._changes
            names = list(self._checks)
            results = await asyncio.gather(*(self._result(self._checks[name][0]) for name in names))
            if self._seen_changes == self._changes:
                break
        checks = {name: state for name, (state, _) in zip(names, results, strict=True)}
        details = {name: found for name, (_, found) in zip(names, results, strict=True) if found}
        bad = [name for name, state in checks.items() if state != OK and self._checks[name][1]]
        if self.state != OK:
            checks["service"] = self.state
        ready = self.state == OK and not bad
        return HealthView(service=self.service, version=self.version, ready=ready, checks=checks, details=details)

    @staticmethod
    async def _result(check: Check) -> tuple[str, str | None]:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                return OK, await check()
        except AppError as error:
            return error.message, None
        except TimeoutError:
            return f"no answer within {CHECK_TIMEOUT_S:g} s", None
        except Exception as error:
            log.exception("a health check failed by a defect of ours")
            return repr(error), None


def health_app(health: Health) -> Starlette:
    """Return the three routes; none wants a key, none tells a secret."""

    async def livez(_: Request) -> Response:
        trouble = health.hang()
        return PlainTextResponse(redact(trouble or OK), 503 if trouble else 200)

    async def readyz(_: Request) -> Response:
        view = await health.view()
        return Response(view.encode(), 200 if view.ready else 503, media_type="application/json")

    async def scrape(_: Request) -> Response:
        return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)

    return Starlette(routes=[Route("/livez", livez), Route("/readyz", readyz), Route("/metrics", scrape)])


class HealthServer(uvicorn.Server):
    """uvicorn without signals and without its ten wake-ups a second."""

    def __init__(self, health: Health, port: int) -> None:
        super().__init__(
            uvicorn.Config(
                health_app(health),
                host=LOOPBACK,
                port=port,
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
            )
        )
        self.service = health.service
        self._exit_asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """Return the bound port."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def open(self) -> None:
        """Listen.

        Raises:
            ConfigurationError: The port is taken.
        """
        if not self.config.loaded:
            self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        try:
            await self.startup()
        except SystemExit as error:
            variable = f"POPAGENT_{self.service.upper().replace('-', '_')}_HEALTH_PORT"
            raise ConfigurationError(
                f"port {self.config.port} of {LOOPBACK} is taken by another program; set {variable} to another, or to 0"
            ) from error
        self._task = asyncio.create_task(self._run(), name="health port")

    async def close(self) -> None:
        """Stop listening."""
        self.should_exit = True
        self._exit_asked.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        counter = 0
        while not await self.on_tick(counter):
            counter += 10  # on a multiple of ten the date header is made anew
            try:
                async with asyncio.timeout(TICK_S):
                    await self._exit_asked.wait()
            except TimeoutError:
                continue
        await self.shutdown()
