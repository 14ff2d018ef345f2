"""All programs of a suite: started in groups, restarted, stopped in order; its state file always tells the truth."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from popagent_local.keeper import BACKOFF_S, Keeper, StartError
from popagent_local.output import LogFile, Terminal
from popagent_local.programs import Program, together
from popagent_local.state import Phase, ProgramState, SuiteState

T = TypeVar("T")
LIVES_EVERY_S: Final = 10.0
log = logging.getLogger(__name__)


class StopRequested(Exception):  # noqa: N818 (an order, not an error)
    """Somebody asked the suite to end while it was still starting."""


class Supervisor:
    """Runs programs for one home; use it from the main thread, whose end ends every program."""

    def __init__(
        self, home: Path, state: SuiteState, terminal: Terminal, backoff_s: tuple[float, ...] = BACKOFF_S
    ) -> None:
        self.home = home
        self.state = state
        self.terminal = terminal
        self.backoff_s = backoff_s
        self.keepers: dict[str, Keeper] = {}
        self.stop_requested = asyncio.Event()

    def listen_to_signals(self) -> None:
        """Stop at SIGINT, SIGTERM or SIGHUP; kill at a second SIGINT, which only a person sends."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._on_signal, number)

    def _on_signal(self, number: signal.Signals) -> None:
        if not self.stop_requested.is_set():
            self.stop_requested.set()
            return
        if number != signal.SIGINT:
            return
        self.terminal.warn("killing what still runs")
        for keeper in self.keepers.values():
            keeper.kill()

    async def unless_stopped(self, work: Awaitable[T]) -> T:
        """Wait for `work`.

        Raises:
            StopRequested: The order to stop came first; `work` is cancelled.
        """
        task = asyncio.ensure_future(work)
        stop = asyncio.create_task(self.stop_requested.wait())
        try:
            await asyncio.wait([task, stop], return_when=asyncio.FIRST_COMPLETED)
            if not self.stop_requested.is_set():
                return task.result()
        finally:
            task.cancel()
            stop.cancel()
            await asyncio.wait([task, stop])
        # What failed meanwhile may have been ended by the same Ctrl-C.
        if not task.cancelled() and (failure := task.exception()) is not None:
            log.info("what was told to stop had failed: %s", failure)
        raise StopRequested

    def launch(self, program: Program) -> Keeper:
        """Register a program; `await keeper.start()` runs it."""
        state = self.state.programs[program.name] = ProgramState(port=program.port, essential=program.essential)
        keeper = Keeper(
            program,
            log_file=LogFile(self.home / "logs" / f"{program.name}.log"),
            terminal=self.terminal,
            state=state,
            changed=self.write_state,
            backoff_s=self.backoff_s,
        )
        self.keepers[program.name] = keeper
        return keeper

    async def start(self, *programs: Program) -> list[StartError]:
        """Start programs side by side; return why programs that are not essential did not start.

        Raises:
            StartError: An essential program did not start.
        """
        failures: list[StartError] = []

        async def one(keeper: Keeper) -> None:
            try:
                await keeper.start()
            except StartError as error:
                if keeper.program.essential:
                    raise
                failures.append(error)

        keepers = [self.launch(program) for program in programs]
        await self.unless_stopped(together(*(one(keeper) for keeper in keepers)))
        return failures

    async def watch_lives(self) -> None:
        """Ask every ready program, until cancelled, whether it lives; one timer for all of them."""
        while True:
            await asyncio.sleep(LIVES_EVERY_S)
            await asyncio.gather(*(keeper.look() for keeper in self.keepers.values()))

    async def stop_all(self) -> None:
        """Stop every program, in the order of `stop_order`; one that cannot be stopped does not keep up the others."""
        for order in sorted({keeper.program.stop_order for keeper in self.keepers.values()}):
            stopping = list(self._stopped_at(order))
            results = await asyncio.gather(*(keeper.stop() for keeper in stopping), return_exceptions=True)
            for keeper, result in zip(stopping, results, strict=True):
                if isinstance(result, Exception):
                    log.error("%s could not be stopped", keeper.program.name, exc_info=result)

    def _stopped_at(self, order: int) -> Iterator[Keeper]:
        return (keeper for keeper in self.keepers.values() if keeper.program.stop_order == order)

    def phase(self, phase: Phase, error: str = "") -> None:
        """Write down where the suite is in its life."""
        self.state.phase, self.state.error = phase, error
        self.write_state()

    def write_state(self) -> None:
        """Write the state file; a full disk is told, not fatal."""
        try:
            self.state.write(self.home)
        except OSError as error:
            self.terminal.warn(f"the state file cannot be written: {error}")
