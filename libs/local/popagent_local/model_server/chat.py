"""`POST /v1/chat/completions`: ask the listener, and pass its words on as they come."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from popagent_kit import json
from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.text import one_line
from popagent_local.model_server.door import error_body, error_response
from popagent_local.model_server.grammar import Grammars
from popagent_local.model_server.reply import Chunk, Reply, completion
from popagent_local.model_server.shim import Plan
from popagent_local.model_server.upstream import Upstream, events

log = logging.getLogger(__name__)

Translate = Callable[[dict[str, Any]], list[Chunk]]

DONE: Final = b"data: [DONE]\n\n"
STREAMED: Final = {"stream": True, "stream_options": {"include_usage": True}, "return_progress": True}


async def answer(upstream: Upstream, grammars: Grammars, plan: Plan) -> Response:
    """Return the response to a planned request. An error of the listener keeps its status and its body.

    Raises:
        BadRequestError: A schema cannot be made a grammar.
        UnavailableError: The listener does not answer.
    """
    exchange = Exchange(upstream, grammars, plan)
    streaming = False
    try:
        refused = await exchange.begin()
        if refused is not None:
            return refused
        if plan.stream:
            streaming = True
            return Relay(exchange)
        if plan.is_plain:
            return await exchange.passed_on()
        return JSONResponse(completion([chunk async for chunk in exchange.chunks() if isinstance(chunk, dict)]))
    except RefusedError as error:
        return error.response
    except (httpx2.HTTPError, ValueError) as error:
        return error_response(broken(error))
    finally:
        if not streaming:
            await exchange.close()


class RefusedError(Exception):
    """The listener refused in the middle of an exchange; `response` is what it said."""

    def __init__(self, response: Response) -> None:
        super().__init__("the listener refused")
        self.response = response


class Exchange:
    """One reply: the decision, if there is one to make, then the answer, if no tool was chosen."""

    def __init__(self, upstream: Upstream, grammars: Grammars, plan: Plan) -> None:
        self.upstream = upstream
        self.grammars = grammars
        self.plan = plan
        self.open: httpx2.Response | None = None

    async def begin(self) -> Response | None:
        """Ask the first question; return the listener's error, if it gives one."""
        return await self._ask_decision() if self.plan.decision is not None else await self._ask_answer()

    async def close(self) -> None:
        """Hang up: the model stops at once."""
        if self.open is not None:
            await self.open.aclose()
            self.open = None

    async def passed_on(self) -> Response:
        """Return the listener's whole answer as it is."""
        assert self.open is not None
        return Response(await self.open.aread(), media_type="application/json")

    async def chunks(self) -> AsyncIterator[Chunk | str]:
        """Yield the reply's chunks, and, as text, how far the prompt is read.

        Raises:
            RefusedError: The listener refused the second question.
            ValueError: It broke off, or what it sends is not JSON.
            httpx2.HTTPError: The connection broke.
        """
        reply = Reply(self.plan.no_tool)
        if self.plan.decision is not None:
            async for chunk in self._read(reply.decision):
                yield chunk
            if reply.chose_to_answer:
                await self.close()
                refused = await self._ask_answer()
                if refused is not None:
                    raise RefusedError(refused)
        if self.plan.decision is None or reply.chose_to_answer:
            async for chunk in self._read(reply.answer):
                yield chunk
        if not reply.finished:
            raise ValueError("its words ended without an end")
        if self.plan.include_usage or not self.plan.stream:
            yield reply.usage()

    async def _read(self, translate: Translate) -> AsyncIterator[Chunk | str]:
        assert self.open is not None
        async for event in events(self.open):
            if event is None:
                return
            if "error" in event:
                raise RefusedError(JSONResponse(event, 500))
            for chunk in translate(event):
                yield chunk
            if progress := event.get("prompt_progress"):
                yield f"{progress['processed']} of {progress['total']} tokens read"

    async def _ask_decision(self) -> Response | None:
        assert self.plan.decision_schema is not None
        grammar = self.grammars.of_schema(self.plan.decision_schema)
        return await self._ask({**(self.plan.decision or {}), **STREAMED, "grammar": grammar})

    async def _ask_answer(self) -> Response | None:
        body = dict(self.plan.answer or {})
        if not self.plan.is_plain:
            form = self.plan.answer_schema
            body["grammar"] = self.grammars.of_text() if form is None else self.grammars.of_schema(form)
        return await self._ask(body if self.plan.is_plain and not self.plan.stream else body | STREAMED)

    async def _ask(self, body: dict[str, Any]) -> Response | None:
        self.open = await self.upstream.ask(body)
        if self.open.status_code == httpx2.codes.OK:
            return None
        return Response(await self.open.aread(), self.open.status_code, media_type="application/json")


class Relay(StreamingResponse):
    """The reply as an event stream; the listener is hung up when this response ends, however that comes."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(self._lines(), media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, an error, or until the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.exchange.close()

    async def _lines(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.exchange.chunks():
                # A comment says that something happens, to whoever waits with a time limit.
                yield _line(json.dumps(chunk)) if isinstance(chunk, dict) else f": {chunk}\n\n".encode()
            yield DONE
        except RefusedError as error:
            yield _line(bytes(error.response.body))
        except (AppError, httpx2.HTTPError, ValueError) as error:
            known = error if isinstance(error, AppError) else broken(error)
            yield _line(json.dumps(error_body(known)))


def broken(error: Exception) -> AppError:
    """Return what the client is told when the listener broke off."""
    reason = one_line(str(error)) or type(error).__name__
    log.warning("the chat model broke off", extra={"reason": reason})
    return UnavailableError(f"The chat model broke off: {reason}")


def _line(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"
