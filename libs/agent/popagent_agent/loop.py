"""The loop of one turn: model call, tool calls, again, until there is an answer; never blank, always an end."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from popagent_agent.answer import Answer, AnswerReader
from popagent_agent.batch import ToolRunner
from popagent_agent.communication import LATE, bound, came_in
from popagent_agent.emitter import Emitter
from popagent_agent.messages import UIMessage, is_tool_part, tool_name
from popagent_agent.normalise import says_something
from popagent_agent.ports import Emit, IntentPort, LeasePort, ModelPort
from popagent_agent.prompt import Prompt, Segment, base_segments
from popagent_agent.requests import Requests
from popagent_agent.run_context import RunContext
from popagent_agent.spans import note_run, run_span, step_span
from popagent_agent.stopping import StoppedError, StopSignal
from popagent_agent.tokens import added, usage_metadata
from popagent_agent.toolset import Tool, Toolset
from popagent_models.errors import ContextOverflowError, ModelError
from popagent_models.events import Usage
from popagent_models.request import ModelRequest
from popagent_proto.chat.messages import FAILURE
from popagent_uistream import chunks

log = logging.getLogger(__name__)

AnswerEnd = Literal["stop", "length", "content-filter"]
EndReason = AnswerEnd | Literal["error", "stopped"]

# After so many steps that only repeated earlier calls the model gets no tools any more.
MOST_STUCK_STEPS: Final = 2
ENDINGS: Final[dict[str, AnswerEnd]] = {"length": "length", "content-filter": "content-filter"}
STOPPED: Final = "Stopped before it finished."
BROKEN_OFF: Final = "The model's answer broke off before this call."
OBJECTION: Final = "Your answer cannot be the last word yet. {reason}\nSee to it, then answer again."
ANSWER_NOW: Final = (
    "Answer the person's last message now, in plain text, from what is known. Say openly what is missing."
)


@dataclass(frozen=True, slots=True)
class AgentRun:
    """What one run is given: context, earlier messages oldest first, and what the person says now.

    `segments` come on top of the agent's own (`base_segments`); `max_steps` counts model calls with their tool calls.
    """

    context: RunContext
    message_id: str
    history: Sequence[UIMessage]
    message: UIMessage
    max_steps: int
    segments: Sequence[Segment] = ()
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. `parts` are those of the message, all closed; `steps` are model calls that the ceiling counts.

    `usage` has what delegates used besides. `budget_exhausted` tells that the ceiling forced the answer, `answered`
    that the model wrote one at all. `error_class` is set when `finish_reason` is `error`.
    """

    parts: list[dict[str, Any]]
    usage: Usage
    finish_reason: EndReason
    steps: int
    budget_exhausted: bool
    error_class: str | None = None
    answered: bool = True


class DelegatesPort(Protocol):
    """Those to whom the agent of a run can give work, and write letters."""

    @property
    def usage(self) -> Usage:
        """What all of them have used so far."""

    def joined(self, run: AgentRun, out: Emitter) -> AgentRun:
        """Return the run as its agent has it among them; what they do is told to `out`. Comes before all else."""

    def tools(self) -> list[Tool]:
        """Return a tool for each of them, in order of use."""

    async def settle(self) -> None:
        """Return when nobody works any more."""

    async def close(self) -> None:
        """End whoever still works, and return when they have ended."""


async def run_turn(
    run: AgentRun,
    *,
    model: ModelPort,
    tools: Toolset,
    intents: IntentPort,
    emit: Emit,
    stop: StopSignal,
    lease: LeasePort,
    delegates: DelegatesPort | None = None,
) -> TurnResult:
    """Carry out one turn and send every chunk of it, from `start` to `finish`, `abort` or `error`.

    Raises:
        LeaseLostError: The turn is not ours any more; nothing was sent after that.
    """
    out = Emitter(emit)
    run, offered = _offered(run, tools, delegates, out)
    runner = ToolRunner(run=run.context, tools=offered, out=out, stop=stop, intents=intents, lease=lease)
    with run_span(run.context, run.max_steps) as current:
        try:
            result = await _Turn(run, model, offered, runner, out, stop, delegates).run()
        finally:
            if delegates is not None:
                await delegates.close()
        note_run(current, result.usage, result.finish_reason, result.steps, result.error_class)
    return result


def first_request(run: AgentRun, tools: Toolset, delegates: DelegatesPort | None = None) -> ModelRequest:
    """Return what the first step of this run asks its model."""
    return _requests(*_offered(run, tools, delegates, Emitter(_nowhere))).step(())


def _offered(run: AgentRun, tools: Toolset, delegates: DelegatesPort | None, out: Emitter) -> tuple[AgentRun, Toolset]:
    if delegates is not None:
        run = delegates.joined(run, out)
    narrowed = tools.narrowed(run.context.model.max_tools, delegates.tools() if delegates else ())
    return run, bound(narrowed, run.context)


def _requests(run: AgentRun, tools: Toolset) -> Requests:
    context = run.context
    segments = [*base_segments(context), *run.segments]
    prompt = Prompt(segments, run.history, run.message, context.model.tool_output_tokens)
    return Requests(context, prompt, tools.schemas(), run.temperature)


async def _nowhere(_: chunks.Chunk) -> None:
    """Tell nobody."""


@dataclass(slots=True)
class _Turn:
    run_data: AgentRun
    model: ModelPort
    tools: Toolset
    runner: ToolRunner
    out: Emitter
    stop: StopSignal
    delegates: DelegatesPort | None = None
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    steps: int = 0
    budget_exhausted: bool = False
    answered: bool = True
    call_ids: set[str] = field(default_factory=set)
    retried: bool = False
    objections: int = 0
    objection: str = ""
    before_letters: Answer | None = None
    requests: Requests = field(init=False)

    def __post_init__(self) -> None:
        self.requests = _requests(self.run_data, self.tools)

    async def run(self) -> TurnResult:
        turn_id = self.run_data.context.turn_id
        await self.out.send(chunks.start(message_id=self.run_data.message_id, message_metadata={"turnId": turn_id}))
        try:
            self.requests.refuse_oversized()
            while True:
                answer = await self._steps()
                if not says_something(answer.text):
                    answer = self.before_letters or await self._never_blank(answer)
                if not await self._has_late_letters(answer) and not await self._must_go_on(answer):
                    break
        except StoppedError:
            return await self._end("stopped", chunks.abort(reason=self.stop.reason or "stopped"), STOPPED)
        except ModelError as error:
            return await self._failed(error)
        # Anything else is an ordinary end; a model that still wanted tools has had its last word.
        reason = ENDINGS.get(answer.finish or "stop", "stop")
        return await self._end(reason, chunks.finish(finish_reason=reason), STOPPED)

    async def _has_late_letters(self, answer: Answer) -> bool:
        """Wait for whoever was woken by a letter; tell whether letters came which the answer does not know."""
        if self.delegates is None:
            return False
        with self.stop.interrupts():
            await self.delegates.settle()
        mail = self.run_data.context.mail
        if mail is None or not mail.waits or self.steps >= self.run_data.max_steps:
            return False
        self.before_letters = answer
        return True

    async def _must_go_on(self, answer: Answer) -> bool:
        """Ask whether this may be the last word. The model hears why not; without a step left, the person does."""
        context = self.run_data.context
        if context.thread_id is not None:
            return False  # what a delegate says last is a result for its supervisor, and no answer to the person
        with self.stop.interrupts():
            objection = await context.hooks.before_end(answer.text)
        if objection is None:
            return False
        self.objections += 1
        if self.objections > context.settings.processor_retries or self.steps >= self.run_data.max_steps:
            await self.out.say(objection)
            return False
        self.objection = OBJECTION.format(reason=objection)
        self.before_letters = None
        return True

    async def _steps(self) -> Answer:
        """Return the last answer; the step that the ceiling ends on, or a stuck model, gets no tools."""
        stuck = 0
        while True:
            self.steps += 1
            last = self.steps >= self.run_data.max_steps
            final = last or stuck >= MOST_STUCK_STEPS
            self.budget_exhausted = last and self.steps > 1
            with step_span(self.steps, final=final):
                await self.out.start_step()
                answer = await self._asked(final=final)
                if answer.calls:
                    result = await self.runner.carry_out(answer.calls, self.steps)
                    stuck = stuck + 1 if result.refused_repeats else 0
                await self.out.finish_step()
            if final or not answer.calls:
                return answer

    async def _asked(self, *, final: bool) -> Answer:
        note = self.run_data.context.settings.final_response_feedback if final else ""
        if self.before_letters:
            note = f"{LATE}\n{note}".strip()
        if self.objection:
            note = f"{self.objection}\n{note}".strip()
        try:
            return await self._ask(note, final=final)
        except ContextOverflowError as error:
            if self.retried or error.started:
                raise
            self.retried = True
            self.requests.shorten()
            return await self._ask(note, final=final)

    async def _ask(self, note: str, *, final: bool) -> Answer:
        if letters := came_in(self.run_data.context):
            self.requests.tell(self.out.parts, letters)
        return await self._read(self.requests.step(self.out.parts, note, final=final), may_call=not final)

    async def _read(self, request: ModelRequest, *, may_call: bool) -> Answer:
        reader = AnswerReader(self.out, self.stop, self.call_ids, tools=self.tools.names, may_call=may_call)
        try:
            await reader.read(self.model, request)
        finally:
            self._count(reader.answer.usage)
        await self.out.close_part()
        return reader.answer

    def _count(self, usage: Usage | None) -> None:
        if usage is not None:
            self.usage = added(self.usage, usage)

    async def _never_blank(self, blank: Answer) -> Answer:
        """Ask once more without tools; when that is blank too, say ourselves what happened."""
        with step_span(self.steps, final=True):
            await self.out.start_step()
            answer = blank
            if blank.finish != "content-filter":
                answer = await self._read(self.requests.plain(self.out.parts, ANSWER_NOW), may_call=False)
            if not says_something(answer.text):
                self.answered = False
                await self.out.say(self._fallback(answer))
            await self.out.finish_step()
        return answer

    def _fallback(self, answer: Answer) -> str:
        counts = Counter(tool_name(part) for part in self.out.parts if is_tool_part(part))
        used = ", ".join(f"{name} ({count}×)" for name, count in counts.items())
        did = f" Before that I used these tools: {used}; what they returned is shown above." if used else ""
        if answer.finish == "content-filter":
            why = "The model's provider withheld the answer by its content filter."
        else:
            why = "The model ended without writing an answer, also when it was asked once more."
        return f"{why}{did} Please ask again, or ask in another way."

    async def _failed(self, error: ModelError) -> TurnResult:
        log.warning("turn ended by its model", extra={"error_class": error.error_class, "code": error.code})
        await self.out.settle(BROKEN_OFF)
        await self.out.say(error.message, FAILURE)
        metadata = {"error": {"class": error.error_class, "code": error.code, "text": error.message}}
        return await self._end("error", chunks.error(error.message), BROKEN_OFF, metadata, error.error_class)

    async def _end(
        self,
        reason: EndReason,
        last: chunks.Chunk,
        error_text: str,
        more: dict[str, Any] | None = None,
        error_class: str | None = None,
    ) -> TurnResult:
        usage = self.usage
        if self.delegates is not None:
            await self.delegates.close()  # nobody is told of after the end, and nobody uses anything after it
            usage = added(usage, self.delegates.usage)
        metadata = {
            "usage": usage_metadata(usage),
            "model": self.run_data.context.route.model,
            "steps": self.steps,
            "budgetExhausted": self.budget_exhausted,
            "endReason": reason,
        }
        await self.out.end(last, {**metadata, **(more or {})}, error_text)
        return TurnResult(
            self.out.parts, usage, reason, self.steps, self.budget_exhausted, error_class, answered=self.answered
        )
