"""`POST /v1/chat/completions`: ask the listener, and pass its words on as they come."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any, Final

import httpx2
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from popagent_kit import json
from popagent_kit.errors import AppError, UnavailableError
from popagent_kit.text import one_line
from popagent_local.model_server.door import error_body, error_response
from popagent_local.model_server.reply import DecisionReply, completion
from popagent_local.model_server.shim import BadRequestError, Plan
from popagent_local.model_server.upstream import Upstream, events

log = logging.getLogger(__name__)

Event = dict[str, Any]
CompileGrammar = Callable[[dict[str, Any]], str]

DONE: Final = b"data: [DONE]\n\n"
# What llama.cpp adds to every chunk; of no use to a client.
INTERNAL: Final = ("prompt_progress", "timings")


async def answer(upstream: Upstream, compile_grammar: CompileGrammar, plan: Plan) -> Response:
    """Return the response to a planned request. An error of the listener keeps its status and its body.

    Raises:
        BadRequestError: A tool's schema cannot be made a grammar.
        UnavailableError: The listener does not answer, or breaks off before the first word.
    """
    question = dict(plan.body)
    if plan.schema is not None:
        question["grammar"] = _grammar(compile_grammar, plan.schema)
    found = await upstream.ask(question)
    if plan.stream and found.status_code == httpx2.codes.OK:
        return Relay(found, plan)
    try:
        if found.status_code != httpx2.codes.OK or plan.schema is None:
            return Response(await found.aread(), found.status_code, media_type="application/json")
        reply = DecisionReply(replace(plan, include_usage=True))
        chunks = [chunk async for event in events(found) if event is not None for chunk in reply.feed(event)]
        return JSONResponse(completion(chunks))
    except (httpx2.HTTPError, ValueError) as error:
        return error_response(_broken(error))
    finally:
        await found.aclose()


class Relay(StreamingResponse):
    """The listener's event stream, chunk by chunk; it is hung up when this response ends, however that comes."""

    def __init__(self, found: httpx2.Response, plan: Plan) -> None:
        self.found = found
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(self._lines(plan), media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, an error, or until the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self.found.aclose()

    async def _lines(self, plan: Plan) -> AsyncIterator[bytes]:
        reply = DecisionReply(plan) if plan.schema is not None else PlainReply(plan)
        try:
            async for event in events(self.found):
                if event is None:
                    yield DONE
                    return
                if "error" in event:
                    yield _line(event)
                    return
                read = event.get("prompt_progress")
                chunks = reply.feed(event)
                if chunks:
                    yield b"".join(map(_line, chunks))
                if read:
                    yield f": {read['processed']} of {read['total']} tokens read\n\n".encode()
        except (httpx2.HTTPError, ValueError) as error:
            yield _line(error_body(_broken(error)))


class PlainReply:
    """Passes chunks on, without what only llama.cpp knows."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.begun = False

    def feed(self, upstream: Event) -> list[Event]:
        """Return the chunk that the client gets, if any: reports about the prompt come in several chunks."""
        silent = "prompt_progress" in upstream and self.begun
        self.begun = True
        if silent or (upstream.get("usage") and not self.plan.include_usage):
            return []
        return [{key: value for key, value in upstream.items() if key not in INTERNAL}]


def _grammar(compile_grammar: CompileGrammar, schema: dict[str, Any]) -> str:
    try:
        return compile_grammar(schema)
    except (RuntimeError, ValueError, TypeError) as error:
        raise BadRequestError(f"A tool's schema cannot be used: {one_line(str(error))}", field="tools") from error


def _broken(error: Exception) -> AppError:
    reason = one_line(str(error)) or type(error).__name__
    log.warning("the chat model broke off", extra={"reason": reason})
    return UnavailableError(f"The chat model broke off: {reason}")


def _line(event: Event) -> bytes:
    return b"data: " + json.dumps(event) + b"\n\n"
