"""Asking a model: one request, one stream of events, one retry loop."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import orjson

from popagent_kit.errors import RateLimitedError
from popagent_models.answer import Answer
from popagent_models.dialect import Dialect
from popagent_models.endpoint import Endpoint
from popagent_models.errors import NOT_CONNECTED, ModelConfigurationError, ModelError, ModelRequestError
from popagent_models.events import ModelEvent, Usage
from popagent_models.failures import cut_off, error_for_status, fell_silent
from popagent_models.profile import profile_for
from popagent_models.request import ModelRequest
from popagent_models.trace import CallSpan
from popagent_models.upstream import Body, BrokenOffError, RefusedError, Upstream
from popagent_models.usage import UsageRecord, UsageSink

log = logging.getLogger(__name__)

MOST_RETRIES: Final = 2
MOST_ADAPTATIONS: Final = 3
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 10.0
# An attempt that failed later than this is not repeated here: the person would wait it out twice.
RETRY_WITHIN_S: Final = 20.0
HEADER_TIMEOUT_S: Final = 60.0
# After the finish reason only usage can come, after [DONE] only the end of the body.
USAGE_GRACE_S: Final = 3.0
DRAIN_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds; None leaves the header timeout to the endpoint and the idle timeout to the model's profile."""

    connect_s: float = 5.0
    header_s: float | None = None
    idle_s: float | None = None


class AdmissionPort(Protocol):
    """Grants a call its slot."""

    def slot(self, model: str, *, background: bool = False) -> AbstractAsyncContextManager[float]:
        """Wait for a slot and hold it; gives the seconds waited. Raises RateLimitedError when the queue is full."""
        ...


class OpenAdmission:
    """No limits."""

    @asynccontextmanager
    async def slot(self, model: str, *, background: bool = False) -> AsyncIterator[float]:
        """Admit at once."""
        yield 0.0


class ModelClient:
    """Streams answers of one endpoint; another one gets a client of its own."""

    def __init__(
        self,
        at: Endpoint | None,
        *,
        timeouts: Timeouts | None = None,
        admission: AdmissionPort | None = None,
        usage: UsageSink | None = None,
    ) -> None:
        self.timeouts = timeouts or Timeouts()
        self._admission = admission or OpenAdmission()
        self._usage = usage
        self._dialect = Dialect()
        self._upstream = None if at is None else Upstream(at, connect_timeout_s=self.timeouts.connect_s)

    @property
    def endpoint(self) -> Endpoint | None:
        """Where calls go; None when no model is connected."""
        return None if self._upstream is None else self._upstream.endpoint

    async def close(self) -> None:
        """Close every connection."""
        if self._upstream is not None:
            await self._upstream.close()

    def upstream(self) -> Upstream:
        """Return the wire, for requests that are not chat.

        Raises:
            ModelConfigurationError: No model is connected.
        """
        if self._upstream is None:
            raise ModelConfigurationError(NOT_CONNECTED)
        return self._upstream

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer; a complete one ends with `Usage` and `Finished`.

        Close the generator (`contextlib.aclosing`) when leaving early: that closes the connection to the server, frees
        the slot and writes the usage record. Up to two retries happen before the first event, none after it.

        Raises:
            ModelError: The answer is incomplete; `started` tells whether events were yielded before.
            RateLimitedError: The model's queue is full.
        """
        upstream = self.upstream()
        call = Call(request, upstream)
        try:
            async with self._admission.slot(request.model, background=request.origin.background) as waited_s:
                call.admitted(waited_s)
                while True:
                    try:
                        body = await self._open(call)
                        try:
                            while data := await self._read(body, call):
                                for event in call.answer.feed(data):
                                    call.note_first()
                                    yield event
                            for event in call.end():
                                yield event
                        finally:
                            body.close()
                        break
                    except ModelError as failure:
                        await self._pause_before_retry(call, failure)
        except BaseException as error:
            call.failed(error)
            raise
        finally:
            call.close()
            await self._keep_record(call.record)

    async def _open(self, call: Call) -> Body:
        """Send the request; a server that refuses one of our optional fields is asked again without it."""
        call.begin_attempt()
        body = self._dialect.apply(call.request.body())
        timeout_s = self._header_timeout_s(call)
        for _ in range(MOST_ADAPTATIONS + 1):
            try:
                return await call.upstream.open_stream(encode(body), timeout_s)
            except RefusedError as refused:
                changed = self._dialect.learn(body, refused.status, refused.detail)
                if changed is None:
                    raise self._refusal(call, refused) from refused
                body = changed
        raise ModelRequestError(f"The model server at {call.host} does not accept this request.")

    def _refusal(self, call: Call, refused: RefusedError) -> ModelError:
        return error_for_status(refused.status, refused.detail, call.host, call.request.model, refused.retry_after_s)

    def _header_timeout_s(self, call: Call) -> float:
        if self.timeouts.header_s is not None:
            return self.timeouts.header_s
        # Local servers load the model and read the prompt before they send a header.
        return call.profile.idle_timeout_s if call.upstream.endpoint.is_loopback else HEADER_TIMEOUT_S

    async def _read(self, body: Body, call: Call) -> bytes:
        """Return the next bytes, none at the end; any byte counts as life, heartbeats included."""
        answer = call.answer
        idle_s = self.timeouts.idle_s or call.profile.idle_timeout_s
        if answer.finished:
            idle_s = DRAIN_S if answer.closed else min(idle_s, USAGE_GRACE_S)
        try:
            async with asyncio.timeout(idle_s):
                return await body.next()
        except TimeoutError as error:
            if answer.finished:
                return b""
            raise fell_silent(call.host, idle_s) from error
        except BrokenOffError as error:
            if answer.finished:
                return b""
            raise cut_off(call.host) from error

    async def _pause_before_retry(self, call: Call, failure: ModelError) -> None:
        """Wait before the next attempt; raises `failure` when there must be none."""
        failure.started = call.answer.started
        took_s = time.perf_counter() - call.attempt_at
        asked_s = failure.retry_after_s
        final = not failure.retryable or failure.started or call.record.retries >= MOST_RETRIES
        if final or took_s > RETRY_WITHIN_S or (asked_s or 0) > LONGEST_PAUSE_S:
            raise failure
        longest_s = FIRST_PAUSE_S * 2**call.record.retries
        pause_s = random.uniform(0, longest_s) if asked_s is None else asked_s + random.uniform(0, 0.1 * asked_s)  # noqa: S311
        call.record.retries += 1
        log.info(
            "asking the model server again",
            extra={
                "host": call.host,
                "retry": call.record.retries,
                "pause_s": round(pause_s, 3),
                "error": failure.code,
            },
        )
        await asyncio.sleep(pause_s)

    async def _keep_record(self, record: UsageRecord) -> None:
        if self._usage is None:
            return
        try:
            await self._usage.record(record)
        except Exception:
            log.exception("a usage record was lost", extra={"model": record.route_model})


class Call:
    """What one call knows about itself: attempt, clock, record and span."""

    def __init__(self, request: ModelRequest, upstream: Upstream) -> None:
        self.request = request
        self.upstream = upstream
        self.host = upstream.endpoint.host
        self.profile = profile_for(request.model)
        self.answer = Answer(request, self.host)
        origin = request.origin
        self.record = UsageRecord(
            requested_model=origin.requested_model or request.model,
            route_model=request.model,
            source=origin.source,
            turn_id=origin.turn_id,
            agent_id=origin.agent_id,
            task_id=origin.task_id,
        )
        self.span = CallSpan(self.host, request.model, self.record)
        self.record.trace_id = self.span.trace_id()
        self.error: BaseException | None = None
        self.attempt_at = self.admitted_at = time.perf_counter()

    def admitted(self, waited_s: float) -> None:
        """Start the clocks that must not contain the queue."""
        self.record.queue_ms = round(waited_s * 1000)
        self.admitted_at = time.perf_counter()

    def begin_attempt(self) -> None:
        """Forget what an earlier attempt received: it had yielded nothing."""
        self.attempt_at = time.perf_counter()
        self.answer = Answer(self.request, self.host)

    def note_first(self) -> None:
        """Note the time of the first event."""
        if self.record.ttft_ms is None:
            self.record.ttft_ms = round((time.perf_counter() - self.admitted_at) * 1000)

    def end(self) -> list[ModelEvent]:
        """Return the last events and note how the answer ended."""
        events = self.answer.end()
        self.note_first()
        self.record.finish_reason = self.answer.assembly.reason
        return events

    def failed(self, error: BaseException) -> None:
        """Note why the call did not come to its end; a consumer that left is not a failure."""
        left = isinstance(error, GeneratorExit | asyncio.CancelledError)
        if left and self.record.finish_reason is not None:
            return
        self.error = asyncio.CancelledError() if left else error
        self.record.error_class = "stopped" if left else class_of(error)

    def close(self) -> None:
        """Fill the record and end the span."""
        self.record.duration_ms = round((time.perf_counter() - self.admitted_at) * 1000)
        if self.answer.started or self.record.finish_reason is not None:
            self._count(self.answer.assembly.usage)
        self.span.answered_by(self.answer.assembly.response_model)
        self.span.end(self.record, self.error)

    def _count(self, usage: Usage) -> None:
        self.record.input_tokens = usage.input_tokens
        self.record.output_tokens = usage.output_tokens
        self.record.cached_tokens = usage.cached_tokens
        self.record.reasoning_tokens = usage.reasoning_tokens
        self.record.estimated = usage.estimated


def class_of(error: BaseException) -> str:
    """Return the class that the usage record and the metric name."""
    if isinstance(error, ModelError):
        return error.error_class
    return "rate_limit" if isinstance(error, RateLimitedError) else "internal"


def encode(body: dict[str, Any]) -> bytes:
    """Return the body as JSON.

    Raises:
        ModelRequestError: It holds what JSON cannot (half a surrogate pair, for example).
    """
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise ModelRequestError("The conversation holds a character that cannot be sent to a model.") from error
