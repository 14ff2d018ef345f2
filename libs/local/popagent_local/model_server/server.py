"""The process: weights, listener, embedder and door, from the first signal of life to the last."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Iterator
from typing import Final

import uvicorn

from popagent_kit.errors import ConfigurationError, UnavailableError
from popagent_local.model_server import weights
from popagent_local.model_server.app import Models, build_app
from popagent_local.model_server.embeddings import MiniLm
from popagent_local.model_server.grammar import LlamaGrammars
from popagent_local.model_server.llama import LlamaProcess
from popagent_local.model_server.settings import ModelServerSettings
from popagent_local.model_server.upstream import Upstream

log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
# Streams are cut at a stop: their words come from a process that is ended first.
GRACE_S: Final = 1


class Door(uvicorn.Server):
    """Uvicorn without signal handlers of its own: it would end the process before the listener is ended."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `serve`."""
        yield


async def serve(port: int, api_key: str, settings: ModelServerSettings) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        ConfigurationError: The weights are not complete.
        UnavailableError: The port is taken, a model cannot be loaded, or the listener ended.
    """
    found = await asyncio.to_thread(weights.paths, settings)
    if found is None:
        raise ConfigurationError("The weights are not complete. Run: popagent model pull")
    llama = LlamaProcess(
        found.chat, found.chat_id, settings.thread_count(), settings.prompt_thread_count(), settings.context
    )
    models = Models(api_key, found.chat_id, settings.context, LlamaGrammars())
    config = uvicorn.Config(
        build_app(models),
        host=HOST,
        port=port,
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    door = Door(config)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    work = {
        "door": asyncio.create_task(_open(door, port)),
        "models": asyncio.create_task(_load(models, llama, found)),
        "stop": asyncio.create_task(stop.wait()),
    }
    try:
        await asyncio.wait(work.values(), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for name in ("models", "stop"):
            work[name].cancel()
        await llama.stop()
        door.should_exit = True
        results = await asyncio.gather(*work.values(), return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _open(door: Door, port: int) -> None:
    try:
        await door.serve()
    except SystemExit as error:
        raise UnavailableError(f"Port {port} cannot be listened on.") from error


async def _load(models: Models, llama: LlamaProcess, found: weights.Weights) -> None:
    """Load both models, then wait for the listener to end, which it never should."""
    began = time.monotonic()
    models.embedder = await asyncio.to_thread(MiniLm, found.embedding, found.tokenizer)
    models.upstream = Upstream(await llama.start(), llama.key)
    log.info("models loaded", extra={"seconds": round(time.monotonic() - began, 1), "chat": models.chat_id})
    code = await llama.ended()
    raise UnavailableError(f"The process of the chat model ended with {code}.")
