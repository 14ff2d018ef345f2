"""Trying a model server on a person's behalf: its list, then a few words; every failure has a class and a sentence."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from popagent_kit.errors import AppError
from popagent_models.catalogue import chats, listing, view_of
from popagent_models.client import ModelClient, Timeouts
from popagent_models.endpoint import Endpoint
from popagent_models.errors import ModelError, ModelTimeoutError
from popagent_models.request import ModelRequest, Origin
from popagent_models.upstream import BrokenOffError, RefusedError
from popagent_proto.chat.models import ConnectionClass
from popagent_web.outbound import NoAddressError

CONNECT_S: Final = 3.0
LIST_S: Final = 4.0
WORDS_S: Final = 10.0
MOST_TOKENS: Final = 16
REASONS: Final[tuple[tuple[type[BaseException], ConnectionClass], ...]] = (
    (ssl.SSLError, "tls"),
    (socket.gaierror, "dns"),
    (NoAddressError, "dns"),
    (TimeoutError, "timeout"),
    (OSError, "refused"),
)
QUESTION: Final = "Reply with one word: ready"


@dataclass(frozen=True)
class Found:
    """What a server answered; `latency_ms` to the first word, else to its list."""

    kind: ConnectionClass
    sentence: str
    models: tuple[str, ...] = ()
    latency_ms: int | None = None
    answered_by: str | None = None


async def probe(at: Endpoint, *, model: str | None = None, preferred: str | None = None) -> Found:
    """Ask `at` within 14 s for its list and a few words: of `model`, else `preferred`, else the first.

    Of what is listed only models count whose name is that of one that chats.
    """
    client = ModelClient(at, timeouts=Timeouts(CONNECT_S, WORDS_S, WORDS_S))
    try:
        began = time.perf_counter()
        listed = await _listed(client, at)
        listed_ms = _since(began)
        if isinstance(listed, Found):
            # Some servers keep no list; a model that was named decides then.
            if model is None or listed.kind not in {"not-openai", "no-models"}:
                return listed
            listed = ()
        asked = model or _choice(listed, preferred)
        if asked is None:
            sentence = f"{at.host} answers, but none of its models can hold a conversation. Load one there that can."
            return Found("no-models", sentence, listed, listed_ms)
        return await _asked(client, at, asked, listed, listed_ms)
    finally:
        await client.close()


def _choice(models: tuple[str, ...], preferred: str | None) -> str | None:
    return preferred if preferred in models else next((name for name in models if chats(name)), None)


def names_in(value: Any, key: str | None = None) -> tuple[str, ...] | None:
    """Return the models of a list as servers send it, none of an empty one; None when it is no such list."""
    try:
        view = view_of(value, "", key)
    except ModelError:
        lists = [value[name] for name in ("data", "models") if name in value] if isinstance(value, dict) else [value]
        return () if any(each in (None, []) for each in lists) and value is not None else None
    return (*view.models, *sorted(view.unlisted))


async def _listed(client: ModelClient, at: Endpoint) -> tuple[str, ...] | Found:
    try:
        names = names_in(await listing(client.upstream(), LIST_S), at.key)
    except RefusedError as refused:
        return _refused(refused, at)
    except (TimeoutError, ModelTimeoutError):
        return Found("timeout", _too_slow(at, LIST_S))
    except (ModelError, BrokenOffError) as error:
        if any(isinstance(cause, NoAddressError) for cause in _behind(error)):
            return Found("dns", f"{at.host} leads where clouds give credentials, and no model server is asked there.")
        kind = why_unreachable(error)
        return Found(kind, _unreachable(kind, at)) if kind else Found("not-openai", _not_openai(at))
    if names is None:
        return Found("not-openai", _not_openai(at))
    return names or Found(
        "no-models", f"{at.host} answers, but it has no model. Load or pull one there, then try again."
    )


def _refused(refused: RefusedError, at: Endpoint) -> Found:
    status = refused.status
    if status in {401, 403}:
        return Found("unauthorized", _wants_key(at))
    if 300 <= status < 400:
        sentence = f"{at.host} points to another address. Give the final one: a key is not sent after a redirect."
        return Found("not-openai", sentence)
    if status in {404, 405}:
        sentence = f"{at.host} answers, but there is no list of models at {at.url}/models. "
        return Found("not-openai", sentence + "Is the path right? It ends in /v1 as a rule.")
    return Found("failed", f"{at.host} answers with status {status}. Its own log tells why.")


def _not_openai(at: Endpoint) -> str:
    return f"{at.host} answers, but not as an OpenAI-compatible model server. Is it the right port and path?"


async def _asked(client: ModelClient, at: Endpoint, model: str, models: tuple[str, ...], listed_ms: int) -> Found:
    """Wait for the first word; how the answer goes on tells nothing more."""
    began = time.perf_counter()
    request = ModelRequest(
        model, [{"role": "user", "content": QUESTION}], max_tokens=MOST_TOKENS, origin=Origin(source="probe")
    )
    try:
        async with asyncio.timeout(WORDS_S), aclosing(client.stream(request)) as events:
            await anext(events)
    except (TimeoutError, ModelTimeoutError):
        sentence = (
            f"{at.host} lists its models, but “{model}” said nothing within {WORDS_S:g} s. It may still be loading; "
            "try again in a moment."
        )
        return Found("timeout", sentence, models, listed_ms)
    except AppError as error:
        kind = _kind_of(error)
        sentence = _wants_key(at) if kind == "unauthorized" else f"“{model}” does not answer. {error.message}"
        return Found(kind, sentence, models, listed_ms)
    latency_ms = _since(began)
    return Found("ok", f"“{model}” answers, after {latency_ms / 1000:.1f} s.", models, latency_ms, model)


def _kind_of(error: AppError) -> ConnectionClass:
    refused = error.__cause__
    if isinstance(refused, RefusedError):
        return "unauthorized" if refused.status in {401, 403} else "failed"
    return why_unreachable(error) or "failed"


def why_unreachable(error: BaseException) -> ConnectionClass | None:
    """Return why there was no connection, from whatever lies behind `error`; None when there was one."""
    causes = list(_behind(error))
    # In this order: what the others stand in is an OSError too.
    kind = next((kind for reason, kind in REASONS if any(isinstance(cause, reason) for cause in causes)), None)
    was_cut = any(isinstance(cause, ConnectionResetError) for cause in causes)
    return None if kind == "refused" and was_cut else kind


def _behind(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]


def _unreachable(kind: ConnectionClass, at: Endpoint) -> str:
    return {
        "dns": f"There is no host called {at.host}. Check the spelling.",
        "tls": f"{at.host} does not offer a secure connection that can be trusted. "
        "For a plain server write http:// instead of https://; else its certificate must be valid.",
        "timeout": _too_slow(at, CONNECT_S),
    }.get(kind, f"Nothing listens at {at.host}. Start the server there, or correct host and port.")


def _too_slow(at: Endpoint, seconds: float) -> str:
    return (
        f"{at.host} did not answer within {seconds:g} s. Is it running, and is the address reachable from this machine?"
    )


def _wants_key(at: Endpoint) -> str:
    if at.key is None:
        return f"{at.host} wants a key, and none was sent. Enter the key of your account there."
    return f"{at.host} refuses the key. Check that it is whole and still valid."


def _since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
