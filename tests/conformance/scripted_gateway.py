"""The chat routes over scripted answers, in memory: shows that validate.mjs passes what is right and finds flaws."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from popagent_kit.ids import new_id
from popagent_uistream import chunks as c
from popagent_uistream.chunks import Chunk
from popagent_uistream.encode import DONE, HEADERS, HEARTBEAT, encode
from popagent_uistream.reducer import MessageReducer
from popagent_uistream.snapshot import snapshot_chunks
from popagent_uistream.state import StreamState

PROMPTS = {"normal": "normal", "slow": "slow", "failing": "failing"}
TRANSIENT = ("data-agentActivity",)
WORD_EVERY_S = 0.01

# A flaw is put into each encoded chunk, to prove that it is found.
Flaw = Callable[[bytes], bytes]


class Turn:
    """One answer under way, as the chat service would write it."""

    def __init__(self, prompt: str) -> None:
        self.state = StreamState()
        self.reducer = MessageReducer(store_transient=TRANSIENT)
        self.sent: list[Chunk] = []
        self.stop = asyncio.Event()
        self.grown = asyncio.Condition()
        self.task = asyncio.create_task(self._write(prompt))

    async def emit(self, *written: Chunk) -> None:
        async with self.grown:
            for chunk in written:
                self.reducer.apply(chunk)
                self.sent.append(chunk)
            self.grown.notify_all()

    async def say(self, *written: Chunk) -> None:
        await self.emit(*map(self.state.accept, written))

    async def _write(self, prompt: str) -> None:
        await self.say(c.start(message_id=new_id(), message_metadata={"turn": {"prompt": prompt}}), c.start_step())
        await self.say(c.data("agentActivity", {"doing": "reading"}, data_id="a", transient=True))
        await self.say(c.reasoning_start("r"), c.reasoning_delta("r", "hm"), c.reasoning_end("r"))
        await self.say(c.tool_input_start("1", "read", title="Read"), c.tool_input_delta("1", '{"path":'))
        await self.say(c.tool_input_delta("1", '"a"}'), c.tool_input_available("1", "read", {"path": "a"}))
        await self.say(c.tool_output_available("1", {"lines": 0}, preliminary=True))
        await self.say(c.tool_output_available("1", None), c.finish_step(), c.start_step(), c.text_start("t"))
        for number in range(100 if prompt == "slow" else 3):
            if self.stop.is_set():
                return await self.emit(*self.state.end(c.abort(reason="stopped")))
            await self.say(c.text_delta("t", f"wörd {number} "))
            await asyncio.sleep(WORD_EVERY_S)
        if prompt == "failing":
            return await self.emit(*self.state.end(c.error("The model does not answer.")))
        usage = {"turn": {"usage": {"inputTokens": 1}}}
        return await self.emit(*self.state.end(c.finish(finish_reason="stop", message_metadata=usage)))

    async def after(self, position: int) -> AsyncIterator[Chunk]:
        while True:
            async with self.grown:
                while len(self.sent) <= position:
                    await self.grown.wait()
                ready = self.sent[position:]
            for chunk in ready:
                yield chunk
                if chunk["type"] in {"finish", "abort", "error"}:
                    return
            position += len(ready)


def scripted_gateway(key: str, flaw: Flaw = lambda event: event) -> Starlette:
    """Return the application; its answers follow the last user message, a word of PROMPTS."""
    turns: dict[str, Turn] = {}

    async def events(first: list[Chunk], turn: Turn, position: int) -> AsyncIterator[bytes]:
        for chunk in first:
            yield flaw(encode(chunk))
        async for chunk in turn.after(position):
            yield flaw(encode(chunk)) + HEARTBEAT
        yield DONE

    async def send(request: Request) -> Response:
        if request.headers.get("x-popagent-key") != key:
            return PlainTextResponse("no key", 401)
        body = await request.json()
        running = turns.get(body["id"])
        if running is not None and not running.state.ended:
            return JSONResponse({"error": "A turn is running.", "code": "turn_running"}, 409)
        prompt = next(m for m in reversed(body["messages"]) if m["role"] == "user")["parts"][-1]["text"]
        turn = turns[body["id"]] = Turn(prompt)
        return StreamingResponse(events([], turn, 0), headers=HEADERS)

    async def resume(request: Request) -> Response:
        turn = turns.get(request.path_params["id"])
        if turn is None or turn.state.ended:
            return Response(status_code=204)
        first = snapshot_chunks(turn.reducer.message, transient=TRANSIENT)
        return StreamingResponse(events(first, turn, len(turn.sent)), headers=HEADERS)

    async def stop(request: Request) -> Response:
        turns[request.path_params["id"]].stop.set()
        return JSONResponse({"stopped": True}, 202)

    return Starlette(
        routes=[
            Route("/api/chat", send, methods=["POST"]),
            Route("/api/chat/{id}/stream", resume),
            Route("/api/chat/{id}/stop", stop, methods=["POST"]),
        ]
    )


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    """Serve on a free loopback port; yields the base URL."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task
