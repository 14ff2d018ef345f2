"""`popagent status`: what runs, where it listens, and whether each part says that it is well."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from popagent_kit.settings import command
from popagent_local.infrastructure import NATS, PROGRAM_NAMES
from popagent_local.nats import server_info
from popagent_local.postgres import accepts
from popagent_local.programs import http_status
from popagent_local.services import MODEL_SERVER
from popagent_local.state import ProgramState, SuiteState, is_held


@dataclass(frozen=True)
class StatusView:
    """The suite as it is now; `healthy` by program, asked of each at this moment."""

    running: bool
    state: SuiteState | None
    healthy: dict[str, bool]

    @property
    def well(self) -> bool:
        """Everything runs, is ready and answers."""
        return self.running and self.state is not None and self.state.phase == "ready" and all(self.healthy.values())

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        if self.state is None or not self.running:
            return {"running": False}
        state = self.state
        programs = [
            {"name": name, "healthy": self.healthy.get(name, False), **asdict(row)}
            for name, row in state.programs.items()
        ]
        return {
            "running": True,
            "phase": state.phase,
            "address": state.address,
            "home": state.home,
            "pid": state.pid,
            "since": state.since,
            "bootId": state.boot_id,
            "programs": programs,
        }


async def status(home: Path) -> StatusView:
    """Look at the suite of `home`; each part gets two seconds to answer."""
    state = SuiteState.read(home)
    if state is None or not is_held(home):
        return StatusView(False, state, {})
    return StatusView(True, state, await _ask_all(state))


async def _ask_all(state: SuiteState) -> dict[str, bool]:
    answers = await asyncio.gather(*(_healthy(name, row) for name, row in state.programs.items()))
    return dict(zip(state.programs, answers, strict=True))


async def _healthy(name: str, row: ProgramState) -> bool:
    if row.port is None or row.pid is None:
        return False
    if name in PROGRAM_NAMES.values():
        return await asyncio.to_thread(accepts, row.port)
    if name == NATS:
        return await asyncio.to_thread(server_info, row.port) is not None
    return await http_status(row.port, "/health" if name == MODEL_SERVER else "/readyz") == 200


def render(view: StatusView) -> str:
    """Return the table."""
    if view.state is None or not view.running:
        return f"popagent does not run. Start it with `{command('up')}`."
    state = view.state
    lines = [f"{state.phase} · {state.address or 'no address yet'} · {state.home} · process {state.pid}", ""]
    lines.append(f"  {'PROGRAM':<18}{'STATE':<12}{'HEALTH':<8}{'PORT':>6}{'PID':>9}{'RESTARTS':>10}  SINCE")
    for name, row in state.programs.items():
        health = "ok" if view.healthy.get(name) else "-"
        lines.append(
            f"  {name:<18}{row.state:<12}{health:<8}{row.port or '-':>6}{row.pid or '-':>9}{row.restarts:>10}"
            f"  {row.since[:19]} {row.detail}".rstrip()
        )
    return "\n".join(lines)
