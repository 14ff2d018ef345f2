"""Carry out one turn: snapshot, loop, end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from popagent_agent.loop import AgentRun, TurnResult, run_turn
from popagent_agent.ports import LeaseLostError as RunLostError
from popagent_agent.ports import ToolCall
from popagent_agent.stopping import StopSignal
from popagent_chat.deps import ChatDeps
from popagent_chat.turns import store
from popagent_chat.turns.context import TurnContext, snapshot
from popagent_chat.turns.ending import Ending, close_with, end_turn
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_kit import json
from popagent_kit.clock import now, wire_time
from popagent_kit.errors import AppError
from popagent_kit.text import excerpt
from popagent_proto.chat.turns import TurnState
from popagent_rows.leased import Lease, LeaseLostError, Outcome
from popagent_telemetry import extract, span
from popagent_tools.catalogue import toolset_for
from popagent_uistream import chunks

log = logging.getLogger(__name__)

INTERRUPTED: Final = (
    "The answer was interrupted because the service that wrote it stopped. What it had written is kept; "
    "ask again to go on."
)
BROKEN: Final = "Something went wrong on our side, and the answer could not be written. The log holds the reason."
STATES: Final[dict[str, TurnState]] = {"error": "failed", "stopped": "stopped"}
INTENT_ARGUMENTS: Final = 8_000


async def carry_out(deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> Outcome:
    """Run the turn to its end, whatever happens; the row is ended here, so that the worker has nothing to write."""
    turn = lease.row
    started = time.monotonic()
    with span("chat.turn", _attributes(turn), parent=extract(turn.trace_headers)):
        try:
            ending = await _answered(deps, lease, stream)
        except (LeaseLostError, RunLostError):
            raise
        except asyncio.CancelledError:
            if lease.ending != "interrupted":
                raise
            ending = Ending("interrupted", error_class="interrupted")
            error = {"class": "interrupted", "text": INTERRUPTED}
            await close_with(stream, chunks.error(INTERRUPTED), {"error": error})
        except AppError as error:
            ending = await _failed(stream, error.code, error.message)
            log.warning("turn failed", extra={"turn": turn.id, "reason": error.message})
        except Exception:
            ending = await _failed(stream, "internal", BROKEN)
            log.exception("turn failed", extra={"turn": turn.id})
        await stream.note({"state": ending.state, "durationMs": round((time.monotonic() - started) * 1000)})
        await end_turn(deps, lease, stream, ending)
    return None


async def _answered(deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> Ending:
    context = await snapshot(deps, lease.row)
    stop = StopSignal()
    watch = asyncio.create_task(_stop_when_asked(lease, stop), name="turn stop")
    try:
        result = await _loop(deps, lease, stream, context, stop)
    finally:
        watch.cancel()
        if context.run.workspace is not None:
            context.run.workspace.folder.close()
    usage = result.usage
    state = STATES.get(result.finish_reason, "completed")
    return Ending(state, result.error_class, usage.input_tokens, usage.output_tokens)


async def _loop(
    deps: ChatDeps, lease: Lease[LeasedTurn], stream: TurnStream, context: TurnContext, stop: StopSignal
) -> TurnResult:
    return await run_turn(
        AgentRun(
            context=context.run,
            message_id=lease.row.assistant_message_id,
            history=context.history,
            message=context.message,
            max_steps=context.run.settings.supervisor_max_steps,
        ),
        model=deps.models.client,
        tools=toolset_for(context.run.agent.tools),
        intents=Intents(deps, lease),
        emit=stream.emit,
        stop=stop,
        lease=RunLease(lease),
    )


async def _failed(stream: TurnStream, error_class: str, sentence: str) -> Ending:
    """Say in the answer, in words, why there is none; what was written before stays."""
    for chunk in [] if stream.next_chunk else [chunks.start()]:
        await stream.emit(chunk)
    await close_with(stream, chunks.error(sentence), {"error": {"class": error_class, "text": sentence}})
    return Ending("failed", error_class)


async def _stop_when_asked(lease: Lease[LeasedTurn], stop: StopSignal) -> None:
    await lease.stop.wait()
    stop.stop("stopped by the person")


def _attributes(turn: LeasedTurn) -> dict[str, str | int]:
    return {"popagent.turn.id": turn.id, "popagent.session.id": turn.session_id, "popagent.attempt": turn.attempt}


def start_metadata(turn: LeasedTurn) -> dict[str, object]:
    """Return what the message says of itself from its first chunk on."""
    metadata: dict[str, object] = {"turnId": turn.id, "createdAt": wire_time(now())}
    if turn.trace_id is not None:
        metadata["traceId"] = turn.trace_id
    return metadata


class RunLease:
    """The lease as the loop knows it."""

    def __init__(self, lease: Lease[LeasedTurn]) -> None:
        self._lease = lease

    def check(self) -> None:
        """Raise the loop's LeaseLostError from the local deadline on."""
        try:
            self._lease.check()
        except LeaseLostError as error:
            raise RunLostError(error.message) from error


class Intents:
    """Writes the intent row of a call that may have an effect."""

    def __init__(self, deps: ChatDeps, lease: Lease[LeasedTurn]) -> None:
        self._deps = deps
        self._lease = lease

    async def record(self, step: int, call: ToolCall) -> None:
        """Store the row under the fence; no row, no call."""
        arguments = excerpt(json.dumps(call.arguments).decode(), INTENT_ARGUMENTS)
        try:
            async with self._deps.pool.acquire() as conn:
                await self._lease.run(conn, store.INTENT, step, call.call_id, call.name, arguments)
        except LeaseLostError as error:
            raise RunLostError(error.message) from error
