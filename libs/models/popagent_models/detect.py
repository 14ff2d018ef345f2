"""Looking for model servers at the well-known ports of this machine, only when somebody asks."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from popagent_models import well_known
from popagent_models.catalogue import listing
from popagent_models.endpoint import Endpoint
from popagent_models.errors import ModelError
from popagent_models.probe import names_in
from popagent_models.upstream import BrokenOffError, RefusedError, Upstream

LOOPBACK: Final = "127.0.0.1"
WITHIN_S: Final = 0.9
# What servers write into `owned_by` of their models.
SIGNATURES: Final = {"vllm": "vLLM", "llamacpp": "llama.cpp", "library": "Ollama", "organization_owner": "LM Studio"}


@dataclass(frozen=True)
class Detected:
    """A server that answers as a model server does."""

    name: str
    url: str
    models: tuple[str, ...]
    needs_key: bool = False


async def detect(avoid: Collection[int] = (), ports: dict[int, str] | None = None) -> list[Detected]:
    """Ask every well-known port at once, those of `avoid` never; takes less than a second."""
    known = well_known.PORTS if ports is None else ports
    looks = (_look(port, name) for port, name in known.items() if port not in avoid)
    return [found for found in await asyncio.gather(*looks) if found is not None]


async def _look(port: int, name: str) -> Detected | None:
    at = Endpoint(f"http://{LOOPBACK}:{port}/v1")
    try:
        async with asyncio.timeout(WITHIN_S):
            if not await _listens(port):
                return None
            return await _ask(at, name)
    except TimeoutError:
        return None


async def _listens(port: int) -> bool:
    """Tell whether anybody is there: most ports are closed, and that is no news for the log."""
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    return True


async def _ask(at: Endpoint, name: str) -> Detected | None:
    upstream = Upstream(at, connect_timeout_s=WITHIN_S)
    try:
        value = await listing(upstream, WITHIN_S)
    except RefusedError as refused:
        # Anything may answer 401 there; only who speaks JSON is taken for a server that wants its key.
        wants_key = refused.status in {401, 403} and refused.detail.lstrip().startswith("{")
        return Detected(name, at.url, (), needs_key=True) if wants_key else None
    except (ModelError, BrokenOffError):
        return None
    finally:
        await upstream.close()
    models = names_in(value)
    return None if models is None else Detected(_signature(value) or name, at.url, models)


def _signature(value: Any) -> str | None:
    items = value.get("data") if isinstance(value, dict) else None
    first = items[0] if isinstance(items, list) and items else None
    owner = first.get("owned_by") if isinstance(first, dict) else None
    return SIGNATURES.get(owner) if isinstance(owner, str) else None
