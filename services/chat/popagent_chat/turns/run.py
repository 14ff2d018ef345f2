"""Carry out one turn: snapshot, loop, end."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from opentelemetry.trace import Span

from popagent_agent.delegated_run import Specialists
from popagent_agent.delegation import Delegates
from popagent_agent.loop import TurnResult, run_turn
from popagent_agent.stopping import StoppedError, StopSignal
from popagent_chat.deps import RunDeps
from popagent_chat.hooks.store import IS_FIRST_TURN
from popagent_chat.threads.words import said
from popagent_chat.turns import store
from popagent_chat.turns.closing import BROKEN, STOPPED, Ending, failed, interrupted, stopped
from popagent_chat.turns.composing import agent_run
from popagent_chat.turns.context import TurnContext, snapshot
from popagent_chat.turns.delegates import DelegateThreads
from popagent_chat.turns.ending import end_turn
from popagent_chat.turns.store import LeasedTurn
from popagent_chat.turns.stream import TurnStream
from popagent_kit.errors import AppError
from popagent_models.errors import ModelError
from popagent_proto.chat.turns import TurnState
from popagent_rows.leased import Lease, LeaseLostError
from popagent_runs.leases import Intents, RunLease, as_held
from popagent_runs.waiting import while_held
from popagent_telemetry import extract, span
from popagent_tools.catalogue import tools_of

log = logging.getLogger(__name__)

STATES: Final[dict[str, TurnState]] = {"error": "failed", "stopped": "stopped"}


async def carry_out(deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> None:
    """Run the turn to its end, whatever happens; the row is ended here, so that the worker has nothing to write.

    Raises:
        LeaseLostError: Another process has the turn.
    """
    turn = lease.row
    with span("chat.turn", attributes_of(turn), parent=extract(turn.trace_headers)) as current:
        ending = await _answered_or_closed(deps, lease, stream)
        note_ending(current, ending)
        await end_turn(deps, lease, stream, ending)


async def _answered_or_closed(deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> Ending:
    turn = lease.row
    try:
        with as_held():
            return await _answered(deps, lease, stream)
    except LeaseLostError:
        raise
    except asyncio.CancelledError:
        if lease.ending != "interrupted":
            raise
        return await interrupted(stream)
    except StoppedError:
        return await stopped(stream)
    except AppError as error:
        log.warning("turn failed", extra={"turn": turn.id, "reason": error.message})
        error_class = error.error_class if isinstance(error, ModelError) else error.code
        return await failed(stream, error_class, error.message)
    except Exception:
        log.exception("turn failed", extra={"turn": turn.id})
        return await failed(stream, "internal", BROKEN)


async def _answered(deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream) -> Ending:
    stop = StopSignal()
    watch = asyncio.create_task(_stop_when_asked(lease, stop), name="turn stop")
    try:
        with stop.interrupts():
            context = await while_held(lease, lambda: snapshot(deps, lease.row), "a turn")
        with context:
            stream.describe({"model": context.run.route.model})
            try:
                with stop.interrupts():
                    await context.hooks.session_begins(lambda: _is_first(deps, lease.row))
                    await context.hooks.before_prompt(said(context.message["parts"]))
                result = await _loop(deps, lease, stream, context, stop)
            finally:
                stream.closing |= context.hooks.tally()
    finally:
        watch.cancel()
    usage = result.usage
    state = STATES.get(result.finish_reason, "completed")
    return Ending(state, result.error_class, usage.input_tokens, usage.output_tokens)


async def _is_first(deps: RunDeps, turn: LeasedTurn) -> bool:
    async with deps.pool.acquire() as conn:
        return await IS_FIRST_TURN.value(conn, turn.session_id, turn.id)


async def _loop(
    deps: RunDeps, lease: Lease[LeasedTurn], stream: TurnStream, context: TurnContext, stop: StopSignal
) -> TurnResult:
    intents, held = Intents(deps.pool, lease, store.INTENT), RunLease(lease)
    specialists = Specialists(
        model_for=lambda _: context.model,
        tools_for=tools_of,
        threads=DelegateThreads(deps.pool, lease),
    )
    return await run_turn(
        agent_run(context, lease.row.assistant_message_id),
        model=context.model,
        tools=tools_of(context.run.agent),
        intents=intents,
        emit=stream.emit,
        stop=stop,
        lease=held,
        delegates=Delegates(specialists, intents=intents, stop=stop, lease=held),
    )


async def _stop_when_asked(lease: Lease[LeasedTurn], stop: StopSignal) -> None:
    await lease.stop.wait()
    stop.stop(STOPPED)


def attributes_of(turn: LeasedTurn) -> dict[str, str | int]:
    """Return what the spans of a turn are named by."""
    return {"popagent.turn.id": turn.id, "popagent.session.id": turn.session_id, "popagent.attempt": turn.attempt}


def note_ending(current: Span, ending: Ending) -> None:
    """Write into the span of a turn how it ended; the list of traces shows that."""
    current.set_attribute("popagent.turn.state", ending.state)
    if ending.error_class is not None:
        current.set_attribute("error.type", ending.error_class)
