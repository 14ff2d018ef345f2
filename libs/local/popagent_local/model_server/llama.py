"""The process that holds the chat model: llama.cpp's own HTTP listener on a free loopback port.

A process of its own, since loading holds the interpreter for seconds, during which the door has to answer. It tells
its address on standard output, and ends when its standard input does, or its parent.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from popagent_kit.errors import UnavailableError
from popagent_kit.exec_shim import die_with_parent

log = logging.getLogger(__name__)

KEY_VARIABLE: Final = "POPAGENT_LLAMA_KEY"
# Tokens read between two looks at whether the client is still there.
BATCH_TOKENS: Final = 128
HUGE_PAGES: Final = "glibc.malloc.hugetlb=1"
# Earlier conversations whose prompt need not be read again.
PROMPT_CACHE_MIB: Final = 512


@dataclass
class LlamaProcess:
    """The listener's process, as its parent sees it."""

    model: Path
    alias: str
    threads: int
    prompt_threads: int
    context: int
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self) -> str:
        """Return the base address, when the model is loaded.

        Raises:
            UnavailableError: The process ended before, for example because the file is no model.
        """
        command = [sys.executable, "-m", __name__, "--parent", str(os.getpid()), "--model", str(self.model)]
        command += ["--alias", self.alias, "--context", str(self.context)]
        command += ["--threads", str(self.threads), "--prompt-threads", str(self.prompt_threads)]
        # Threads that wait for each other by spinning are a tenth as fast beside other work; these sleep.
        env = {**os.environ, KEY_VARIABLE: self.key, "OMP_WAIT_POLICY": "passive", **huge_pages()}
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=env)
        assert self.process.stdout is not None
        address = (await self.process.stdout.readline()).decode().strip()
        if not address.startswith("http://127.0.0.1:"):
            code = await self.process.wait()
            raise UnavailableError(f"The process of the chat model ended with {code} while it loaded {self.model}.")
        return address

    async def ended(self) -> int:
        """Wait until the process is gone; return its code."""
        assert self.process is not None
        return await self.process.wait()

    async def stop(self) -> None:
        """End it at once: it keeps nothing that could be lost."""
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


def huge_pages() -> dict[str, str]:
    """Return the order to glibc to ask for huge pages: each word written walks through a gigabyte of weights."""
    given = os.environ.get("GLIBC_TUNABLES")
    return {"GLIBC_TUNABLES": f"{given}:{HUGE_PAGES}" if given else HUGE_PAGES}


def main() -> None:
    """Load the model, tell the address, and stay until the parent closes our standard input."""
    parser = argparse.ArgumentParser(prog="popagent_local.model_server.llama")
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--prompt-threads", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    options = parser.parse_args()
    die_with_parent(signal.SIGKILL, options.parent)

    import xllamacpp  # noqa: PLC0415 (after the environment of its thread library is set, and only in this process)

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.model_alias = [options.alias]
    # Most weights are laid out anew for this processor; a mapped file would stay in memory beside them.
    params.load_mode = xllamacpp.llama_load_mode.LLAMA_LOAD_MODE_NONE
    params.n_ctx = options.context
    params.n_parallel = 1
    params.n_batch = BATCH_TOKENS
    params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.prompt_threads
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [os.environ[KEY_VARIABLE]]
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    # The listener's threads cannot be joined from here, and hold nothing.
    os._exit(0)


if __name__ == "__main__":
    main()
