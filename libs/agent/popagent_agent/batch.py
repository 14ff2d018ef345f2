"""The tool calls of one step: checked, limited in number at a time, each with exactly one result."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from popagent_agent.answer import CallDraft
from popagent_agent.emitter import Emitter
from popagent_agent.ports import IntentPort, LeaseLostError, LeasePort, ToolCall
from popagent_agent.run_context import Access, RunContext
from popagent_agent.spans import note_tool, tool_span
from popagent_agent.stopping import StoppedError, StopSignal
from popagent_agent.toolset import ToolArgumentsError, ToolOutcome, Toolset

log = logging.getLogger(__name__)

MOST_CALLS: Final = 32
MOST_REPEATS: Final = 2
# How long a tool that was told to stop may take for it; a thread cannot be ended from outside.
STOP_GRACE_S: Final = 5.0
REPEATED: Final = (
    "You made this same call before and have its result. It was not carried out again. "
    "Try something else, or answer with what you know."
)
TOO_MANY: Final = f"At most {MOST_CALLS} calls are carried out in one step; this one was not."
NOT_RECORDED: Final = "This call could not be written down beforehand, so it was not carried out. Try again later."


@dataclass(frozen=True, slots=True)
class BatchResult:
    """`refused_repeats` is true when every call was refused as a repetition."""

    refused_repeats: bool


class ToolRunner:
    """Carries out the batches of one run; remembers its calls, so that a model which repeats itself is told so."""

    def __init__(
        self,
        *,
        run: RunContext,
        tools: Toolset,
        out: Emitter,
        stop: StopSignal,
        intents: IntentPort,
        lease: LeasePort,
    ) -> None:
        self._run = run
        self._tools = tools
        self._out = out
        self._stop = stop
        self._intents = intents
        self._lease = lease
        self._made: Counter[tuple[str, bytes]] = Counter()
        self._letters = 0

    async def carry_out(self, drafts: list[CallDraft], step: int) -> BatchResult:
        """Run the calls; results are sent as they come and stand in the message in the order of the calls.

        Raises:
            StoppedError: The run was stopped; what had finished has its result, the rest is left to the emitter.
            LeaseLostError: The run is not ours any more.
        """
        calls: list[ToolCall] = []
        repeats = 0
        for number, draft in enumerate(drafts):
            call = await self._announced(draft)
            if call is None:
                continue
            if number >= MOST_CALLS:
                await self._out.call_settled(call.call_id, TOO_MANY, error=True)
            elif self._repeats(call):
                repeats += 1
                await self._out.call_settled(call.call_id, REPEATED, error=True)
            else:
                calls.append(call)
        if calls:
            await self._run_all(calls, step)
        return BatchResult(refused_repeats=repeats > 0 and repeats == len(drafts))

    async def _announced(self, draft: CallDraft) -> ToolCall | None:
        """Send the arguments; None when they are unusable and the call has its error already."""
        try:
            arguments = self._tools.arguments_of(draft.name, draft.arguments)
        except ToolArgumentsError as error:
            await self._out.call_refused(draft.call_id, draft.name, draft.arguments, str(error))
            return None
        await self._out.call_complete(draft.call_id, draft.name, arguments)
        return ToolCall(draft.call_id, draft.name, arguments)

    def _repeats(self, call: ToolCall) -> bool:
        if (mail := self._run.mail) is not None and mail.received > self._letters:
            # Whatever was known before, another agent may have changed it, and the next wait may bring the next letter.
            self._letters = mail.received
            self._made.clear()
        self._made[call.content] += 1
        return self._made[call.content] > MOST_REPEATS

    async def _run_all(self, calls: list[ToolCall], step: int) -> None:
        most = self._run.settings.concurrent_tool_calls
        limit = asyncio.Semaphore(1 if any(map(self._may_suspend, calls)) else most)
        tasks = {asyncio.create_task(self._limited(call, step, limit)): call for call in calls}
        pending = set(tasks)
        try:
            while pending:
                with self._stop.interrupts():
                    done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task, call in tasks.items():
                    if task in done:
                        await self._settle(call, task.result())
        except StoppedError:
            for task in await _ended(pending):
                if not task.cancelled() and task.exception() is None:
                    await self._settle(tasks[task], task.result())
            raise
        finally:
            await _ended(pending)
            for task in tasks:
                if task.done() and not task.cancelled():
                    task.exception()  # the first failure is on its way up; asyncio would report the others as lost

    async def _settle(self, call: ToolCall, outcome: ToolOutcome) -> None:
        await self._out.call_settled(
            call.call_id, outcome.text, error=outcome.error, took_s=outcome.took_s, refused=outcome.refused
        )

    def _may_suspend(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.may_suspend

    async def _limited(self, call: ToolCall, step: int, limit: asyncio.Semaphore) -> ToolOutcome:
        async with limit:
            tool = self._tools.get(call.name)
            access: Access = tool.access if tool is not None else "read"
            with tool_span(call.name, call.call_id, access) as current:
                may = tool is not None and self._run.policy.refusal(call.name, access) is None
                if may and (refused := await self._refused(call, step, access)) is not None:
                    return refused
                began_at = time.monotonic()
                outcome = await self._tools.call_parsed(call.name, call.arguments, self._run, call.call_id)
                outcome = replace(outcome, took_s=time.monotonic() - began_at)
                note_tool(current, error=outcome.error, characters=len(outcome.text))
                if may:
                    await self._told(call, outcome)
            if (access != "read" and not outcome.error) or (tool is not None and tool.changes):
                self._forget_all_but(call)
            return outcome

    async def _refused(self, call: ToolCall, step: int, access: Access) -> ToolOutcome | None:
        """Ask the hooks, then write the call down; an outcome means that it must not be made."""
        reason = await self._run.hooks.before_tool(self._run.agent.id, call)
        if reason is not None:
            return ToolOutcome(reason, error=True, refused=True)
        return await self._recorded(call, step) if access != "read" else None

    async def _told(self, call: ToolCall, outcome: ToolOutcome) -> None:
        # The call has its result, whoever ends the run while the hooks are told of it.
        with contextlib.suppress(asyncio.CancelledError):
            await self._run.hooks.after_tool(self._run.agent.id, call, outcome.text, error=outcome.error)

    def _forget_all_but(self, call: ToolCall) -> None:
        """Something changed, so that every other call may give another result now; this one alone may not repeat."""
        for content in [content for content in self._made if content != call.content]:
            del self._made[content]

    async def _recorded(self, call: ToolCall, step: int) -> ToolOutcome | None:
        """Check the lease and store the intent; an outcome means that the call must not be made."""
        self._lease.check()
        try:
            await self._intents.record(step, call)
        except LeaseLostError:
            raise
        except Exception:
            log.exception("intent not recorded", extra={"tool": call.name, "step": step})
            return ToolOutcome(NOT_RECORDED, error=True)
        # Storing it may have taken longer than the lease lasts.
        self._lease.check()
        return None


async def _ended(tasks: set[asyncio.Task[ToolOutcome]]) -> set[asyncio.Task[ToolOutcome]]:
    """Cancel the tasks and wait for them, at most STOP_GRACE_S; returns those that ended."""
    for task in tasks:
        task.cancel()
    if not tasks:
        return set()
    done, late = await asyncio.wait(tasks, timeout=STOP_GRACE_S)
    for task in late:
        log.warning("tool does not stop", extra={"task": task.get_name()})
    return done
