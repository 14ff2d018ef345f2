"""What a test plays in place of the models: the listener of llama.cpp, its grammars, the embedder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from popagent_local.model_server.embeddings import DIMENSIONS, Embedded


class Listener:
    """Plays llama.cpp: says `words` one by one, each when `go` allows it; notices when it is hung up on."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.decision: list[str] | None = None
        """Said before `words`, in answer to the first question."""
        self.go = asyncio.Semaphore(1_000)
        self.asked: list[dict[str, Any]] = []
        self.arrived = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.error: Response | None = None
        self.error_from = 1
        self.silent = False
        self.finish_reason: str | None = "stop"

    async def answer(self, request: Request) -> Response:
        self.asked.append(json.loads(await request.body()))
        self.arrived.set()
        if self.error is not None and len(self.asked) >= self.error_from:
            return self.error
        if self.silent:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.hung_up.set()
            return Response()
        if not self.asked[-1].get("stream"):
            message = {"role": "assistant", "content": "".join(self.words)}
            return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        return StreamingResponse(self.speak(), media_type="text/event-stream")

    async def speak(self) -> AsyncIterator[bytes]:
        try:
            progress = {"total": 9, "cache": 0, "processed": 0, "time_ms": 0}
            yield self.event({"role": "assistant", "content": None}, prompt_progress=progress)
            yield self.event({"role": "assistant", "content": None}, prompt_progress={**progress, "processed": 9})
            words, self.decision = (self.words if self.decision is None else self.decision), None
            for word in words:
                await self.go.acquire()
                yield self.event({"content": word})
            if self.finish_reason is None:
                return
            yield self.event({}, finish_reason=self.finish_reason)
            usage = {"prompt_tokens": 9, "completion_tokens": len(words)}
            yield b"data: " + json.dumps({"choices": [], "usage": usage, "timings": {}}).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"
        except asyncio.CancelledError:
            self.hung_up.set()
            raise

    @staticmethod
    def event(delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        body = {"id": "x", "created": 1, "model": "tiny", "object": "chat.completion.chunk", "choices": [choice]}
        return b"data: " + json.dumps({**body, **more}, ensure_ascii=False).encode() + b"\n\n"


class Readable:
    """Grammars that a test can read."""

    def of_schema(self, schema: dict[str, Any]) -> str:
        return json.dumps(schema)

    def of_text(self) -> str:
        return '"text"'


class Letters:
    """Counts letters: a vector that a test can foresee."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.batches.append(len(texts))
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in enumerate(texts):
            vectors[row, len(text)] = 1.0
        return Embedded(vectors, sum(map(len, texts)))
