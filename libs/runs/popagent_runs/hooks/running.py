"""The hooks of one run: asked one after another, and every one of them written down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from popagent_agent.delegation import PREFIX
from popagent_agent.ports import ToolCall
from popagent_kit.errors import ForbiddenError
from popagent_kit.ids import new_id
from popagent_proto.chat.hooks import HookEvent
from popagent_runs.hooks.asking import HookCalls, Outcome
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.content import event_body
from popagent_runs.hooks.rows import HookRun, StoredHook
from popagent_runs.hooks.rules import MAY_REFUSE, is_meant

SKIPPED: Final = "Another hook had refused before."
CUT_OFF: Final = "The turn was ended while the hook was asked."


class HookDeniedError(ForbiddenError):
    """A hook refused this."""

    code = "hook_denied"


@dataclass(frozen=True)
class RunHooks:
    """What the loop asks before and after what it does. Without a hook for it nothing is sent, stored or awaited."""

    calls: HookCalls
    audit: HookAudit
    hooks: Sequence[StoredHook]
    session_id: str | None
    agent_id: str
    turn_id: str | None = None
    trace_id: str | None = None
    task_id: str | None = None
    _denied: dict[tuple[str, bytes], str] = field(default_factory=dict)
    _refusals: list[bool] = field(default_factory=list)

    def tally(self) -> dict[str, Any]:
        """Return what the message says of all runs until now; nothing when there was none."""
        if not self._refusals:
            return {}
        return {"hooks": {"runs": len(self._refusals), "denied": sum(self._refusals)}}

    async def session_begins(self, is_first: Callable[[], Awaitable[bool]]) -> None:
        """Tell of the first turn of a session; whether it is, is asked when somebody wants to hear of it."""
        if self._due("SessionStart", "") and await is_first():
            await self._dispatch("SessionStart", self.agent_id, {})

    async def session_ends(self) -> None:
        """Tell that a session was deleted; its audit is gone with it."""
        await self._dispatch("SessionEnd", self.agent_id, {})

    async def task_begins(self, content: dict[str, Any]) -> None:
        """Tell that an attempt of the task began."""
        await self._dispatch("TaskStart", self.agent_id, content)

    async def task_ends(self, content: dict[str, Any]) -> None:
        """Tell how an attempt of the task ended, which is stored already."""
        await self._dispatch("TaskStop", self.agent_id, content)

    async def before_prompt(self, text: str) -> None:
        """Ask about what the person said.

        Raises:
            HookDeniedError: A hook refuses it.
        """
        reason = await self._dispatch("UserPromptSubmit", self.agent_id, {"prompt": text})
        if reason is not None:
            raise HookDeniedError(reason)

    async def before_tool(self, agent_id: str, call: ToolCall) -> str | None:
        """Return why the call must not be made; what was refused once is refused without asking again."""
        specialist = _specialist(call)
        if not (self._due("PreToolUse", call.name) or (specialist and self._due("SubagentStart", specialist))):
            return None
        if call.content not in self._denied:
            reason = await self._dispatch("PreToolUse", agent_id, _told_of(call), call.name)
            if reason is None and specialist:
                reason = await self._dispatch("SubagentStart", agent_id, _task_of(call, specialist), specialist)
            if reason is None:
                return None
            self._denied[call.content] = reason
        return self._denied[call.content]

    async def after_tool(self, agent_id: str, call: ToolCall, text: str, *, error: bool) -> None:
        """Tell what a call gave."""
        event: HookEvent = "PostToolUseFailure" if error else "PostToolUse"
        await self._dispatch(event, agent_id, {**_told_of(call), "output": text}, call.name)
        if specialist := _specialist(call):
            ended = {**_task_of(call, specialist), "result": text, "failed": error}
            await self._dispatch("SubagentStop", agent_id, ended, specialist)

    async def before_end(self, text: str) -> str | None:
        """Return why the answer must not be the last word, None when it may."""
        return await self._dispatch("Stop", self.agent_id, {"answer": text})

    def _due(self, event: HookEvent, subject: str) -> list[StoredHook]:
        return [hook for hook in self.hooks if hook.event == event and is_meant(hook.matcher, subject)]

    async def _dispatch(
        self, event: HookEvent, agent_id: str, content: dict[str, Any], subject: str = ""
    ) -> str | None:
        """Ask every hook of the event in order; the first refusal ends it and is returned as a sentence."""
        due = self._due(event, subject)
        if not due:
            return None
        told = event_body(
            event,
            subject,
            content,
            session_id=self.session_id,
            task_id=self.task_id,
            turn_id=self.turn_id,
            trace_id=self.trace_id,
            agent_id=agent_id,
        )
        runs: list[HookRun] = []
        refusal: str | None = None
        try:
            for hook in due:
                run_id = new_id()
                # Taken back below when the hook is asked to its end.
                runs.append(self._run(hook, run_id, told, Outcome("error", None, CUT_OFF)))
                skips = refusal is not None
                outcome = Outcome("skipped", None, SKIPPED) if skips else await self.calls.ask(hook, run_id, told)
                runs[-1] = self._run(hook, run_id, told, outcome)
                if outcome.decision == "deny" and event in MAY_REFUSE:
                    refusal = _refusal(hook, outcome)
        finally:
            self.audit.add(runs)
            refused = event in MAY_REFUSE
            self._refusals.extend(refused and run.decision == "deny" for run in runs)
        await self.audit.write()
        return refusal

    def _run(self, hook: StoredHook, run_id: str, told: dict[str, Any], outcome: Outcome) -> HookRun:
        return HookRun(
            id=run_id,
            about_id=self.task_id or self.session_id or "",
            turn_id=self.turn_id,
            trace_id=self.trace_id,
            event=hook.event,
            hook_id=hook.id,
            hook_name=hook.name,
            subject=told["subject"],
            decision=outcome.decision,
            reason=outcome.reason,
            status=outcome.status,
            input=told["input"],
            output=outcome.output,
            duration_ms=outcome.duration_ms,
        )


def _told_of(call: ToolCall) -> dict[str, Any]:
    return {"callId": call.call_id, "tool": call.name, "arguments": call.arguments}


def _specialist(call: ToolCall) -> str:
    """Return the id of the agent that the call gives work to, nothing for any other call."""
    return call.name.removeprefix(PREFIX) if call.name.startswith(PREFIX) else ""


def _task_of(call: ToolCall, specialist: str) -> dict[str, Any]:
    return {"callId": call.call_id, "agent": specialist, **call.arguments}


def _refusal(hook: StoredHook, outcome: Outcome) -> str:
    if outcome.status == "denied":
        return f"The hook “{hook.name}” refused this: {outcome.reason}"
    return f"The hook “{hook.name}” failed, and is set to refuse then. {outcome.reason}"


def without_refused(history: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages without those that a hook kept from the model, and the answers that said so."""
    return [message for pair in _exchanges(history) if not _was_refused(pair[-1]) for message in pair]


def _exchanges(history: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield what a person said with the answers to it."""
    exchange: list[dict[str, Any]] = []
    for message in history:
        if message["role"] == "user" and exchange:
            yield exchange
            exchange = []
        exchange.append(message)
    if exchange:
        yield exchange


def _was_refused(message: dict[str, Any]) -> bool:
    error = message.get("metadata", {}).get("error") or {}
    return error.get("class") == HookDeniedError.code
