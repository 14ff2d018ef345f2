"""Which models there are: cached, asked for once at a time, and failing open when the server cannot tell."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from popagent_models.errors import ModelError, UnknownModelError
from popagent_models.failures import cut_off, error_for_status, no_answer, no_headers
from popagent_models.profile import known_context
from popagent_models.upstream import Body, BrokenOffError, RefusedError, Upstream

log = logging.getLogger(__name__)

FETCH_TIMEOUT_S: Final = 5.0
FRESH_S: Final = 60.0
STALE_S: Final = 24 * 3600.0
# How long a reader waits for a refresh before it gets the stale list, and how long a failure is not repeated.
REFRESH_WAIT_S: Final = 0.5
# For the first list; who asks must himself answer within 5 s, so that a silent server is told of and not one of ours.
FIRST_WAIT_S: Final = 3.0
PAUSE_AFTER_FAILURE_S: Final = 10.0
WARN_EVERY_S: Final = 60.0
ASK_STARTING_S: Final = 1.0
MOST_MODELS: Final = 2_000
# Shorter ones are words such as "lm-studio", which servers that want no key are given.
SHORTEST_KEY: Final = 12
LONGEST_LIST_BYTES: Final = 8 * 1024 * 1024

_WELL_FORMED: Final = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")
_NO_CHAT: Final = re.compile(
    r"embed|minilm|(?:^|[/-])(?:bge|e5|gte)-|rerank|whisper|(?:^|-)tts|dall-?e|moderation|stable-diffusion|imagen|veo-",
    re.I,
)
_CONTEXT_FIELDS: Final = (
    "context_length",
    "context_window",
    "max_model_len",
    "loaded_context_length",
    "max_context_length",
    "n_ctx",
    "n_ctx_train",
    "max_input_tokens",
)


@dataclass(frozen=True, slots=True)
class CatalogueView:
    """What is known now; `known` is false when the server never told, and then any well-formed id is accepted.

    `models` are the first MOST_MODELS of the server's list; `unlisted` are the others, which may be used as well.
    """

    models: tuple[str, ...] = ()
    context_windows: Mapping[str, int] = field(default_factory=dict)
    known: bool = False
    unlisted: frozenset[str] = frozenset()

    def accepts(self, model: str) -> bool:
        """Tell whether `model` may be used."""
        return model in self.models or model in self.unlisted if self.known else is_well_formed(model)

    def context(self, model: str) -> int | None:
        """Return the context window in tokens: the server's, else by the name, else None."""
        return self.context_windows.get(model) or known_context(model)

    def default_model(self, stored: str | None, configured: str | None = None) -> str | None:
        """Return the stored default, else POPAGENT_MODEL, else the first model that chats, else None."""
        return stored or configured or next((model for model in self.models if chats(model)), None)


UNKNOWN: Final = CatalogueView()


def is_well_formed(model: str) -> bool:
    """Tell whether the text can be a model id: 1 to 200 characters, none of them blank, invisible or a control."""
    return _WELL_FORMED.fullmatch(model) is not None and model.isprintable()


def chats(model: str) -> bool:
    """Tell whether a model of this name can hold a conversation."""
    return _NO_CHAT.search(model) is None


class Catalogue:
    """The model list of one endpoint; `upstream` raises ModelError when there is none, `clock` counts seconds.

    For the first `starting_s` seconds a server that does not tell is taken to be starting beside us: no warning.
    """

    def __init__(
        self,
        upstream: Callable[[], Upstream],
        *,
        starting_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upstream = upstream
        self._clock = clock
        self._started_by = clock() + starting_s
        self._view = UNKNOWN
        self._fetched_at = -STALE_S
        self._failed_at = -PAUSE_AFTER_FAILURE_S
        self._warned_at = -WARN_EVERY_S
        self._fetch: asyncio.Task[None] | None = None
        self.last_error: ModelError | None = None

    async def models(self) -> CatalogueView:
        """Return the list: at most 60 s old, older (to 24 h) when the server is slow or down, else unknown.

        Never raises for the server's sake; the first call waits up to 3 s, a refresh half a second.
        """
        age_s = self._clock() - self._fetched_at
        if self._view.known and age_s < FRESH_S:
            return self._view
        usable = self.last_told().known
        fetch = self._running_fetch()
        if fetch is not None:
            await asyncio.wait({fetch}, timeout=REFRESH_WAIT_S if usable else FIRST_WAIT_S)
        if not (view := self.last_told()).known:
            self._warn("the model list is not known; any model id is accepted")
        return view

    def last_told(self) -> CatalogueView:
        """Return the list as the server last told it, unknown when that is a day ago; nobody is asked."""
        usable = self._view.known and self._clock() - self._fetched_at < STALE_S
        return self._view if usable else UNKNOWN

    async def wait_until_known(self, timeout_s: float) -> CatalogueView:
        """Ask every second until the server tells its models, for one that is known to be starting."""
        deadline = self._clock() + timeout_s
        while not (view := await self.models()).known and self._clock() < deadline:
            await asyncio.sleep(ASK_STARTING_S)
            self._failed_at = -PAUSE_AFTER_FAILURE_S
        return view

    async def check(self, model: str, field: str = "model") -> None:
        """Accept a model from outside.

        Raises:
            UnknownModelError: It is not well-formed, or a known list lacks it; names `field`.
        """
        if not is_well_formed(model):
            raise UnknownModelError("A model id has 1 to 200 characters and no blanks.", field=field)
        if self._view.known and self._view.accepts(model):
            return
        # A person waits, and an unknown list would let a wrong name fail in the middle of a turn: asked again at once.
        if not self._view.known and self._clock() - self._failed_at >= ASK_STARTING_S:
            self._failed_at = -PAUSE_AFTER_FAILURE_S
        if not (await self.models()).accepts(model):
            raise UnknownModelError(f"The model server does not offer the model “{model}”.", field=field)

    async def close(self) -> None:
        """End a fetch that still runs."""
        if self._fetch is not None:
            self._fetch.cancel()
            await asyncio.gather(self._fetch, return_exceptions=True)

    def _running_fetch(self) -> asyncio.Task[None] | None:
        """Return the one fetch, started if it is due."""
        if self._fetch is not None and not self._fetch.done():
            return self._fetch
        if self._clock() - self._failed_at < PAUSE_AFTER_FAILURE_S:
            return None
        self._fetch = asyncio.create_task(self._refresh(), name="model-catalogue")
        return self._fetch

    async def _refresh(self) -> None:
        try:
            view = await fetch_models(self._upstream())
        except ModelError as error:
            self.last_error = error
            self._failed_at = self._clock()
            self._warn(error.message)
            return
        self._view, self._fetched_at, self.last_error = view, self._clock(), None

    def _warn(self, reason: str) -> None:
        now = self._clock()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            if now < self._started_by:
                log.info("the model server is starting, its models are not known yet", extra={"reason": reason})
            else:
                log.warning("the model catalogue could not be read", extra={"reason": reason})


async def fetch_models(upstream: Upstream, timeout_s: float = FETCH_TIMEOUT_S) -> CatalogueView:
    """Ask the server once.

    Raises:
        ModelError: There is no answer within `timeout_s`, or none that is a model list.
    """
    host = upstream.endpoint.host
    try:
        value = await listing(upstream, timeout_s)
    except TimeoutError as error:
        raise no_headers(host, timeout_s) from error
    except RefusedError as refused:
        raise error_for_status(
            refused.status, refused.detail, host, "", refused.retry_after_s, level=logging.DEBUG
        ) from refused
    except BrokenOffError as error:
        raise cut_off(host) from error
    return view_of(value, host, upstream.endpoint.key)


async def listing(upstream: Upstream, timeout_s: float) -> Any:
    """Return the JSON that stands at /models, None when it is not JSON.

    Raises:
        RefusedError: Another status than 200.
        ModelError, BrokenOffError, TimeoutError: No answer, or none in time.
    """
    async with asyncio.timeout(timeout_s):
        body = await upstream.get("/models", timeout_s)
        try:
            listed = await bounded_body(body)
        finally:
            body.close()
    try:
        return orjson.loads(listed)
    except orjson.JSONDecodeError:
        return None


async def bounded_body(body: Body) -> bytes:
    """Return all of the body, cut behind 8 MiB (which then fails to parse)."""
    read = bytearray()
    while len(read) <= LONGEST_LIST_BYTES and (data := await body.next()):
        read += data
    return bytes(read)


def view_of(value: Any, host: str, key: str | None = None) -> CatalogueView:
    """Return the list in any of the shapes servers use: `{data: [...]}`, `{models: [...]}`, or a bare array.

    Ids that hold `key` are left out: names are shown, stored and logged, and no server may make the key one.

    Raises:
        ModelProviderError: It is none of them, or holds no usable id.
    """
    if isinstance(value, dict):
        value = value.get("data") or value.get("models")
    windows: dict[str, int] = {}
    found: dict[str, None] = {}
    for item in value if isinstance(value, list) else []:
        fields: dict[str, Any] = item if isinstance(item, dict) else {"id": item}
        model = fields.get("id") or fields.get("model") or fields.get("name")
        if not isinstance(model, str) or not is_well_formed(model):
            continue
        if key and len(key) >= SHORTEST_KEY and key in model:
            continue
        found[model] = None
        window = context_of(fields) or known_context(model)
        if window:
            windows[model] = window
    if not found:
        raise no_answer(host)
    models = tuple(found)
    return CatalogueView(models[:MOST_MODELS], windows, known=True, unlisted=frozenset(models[MOST_MODELS:]))


def context_of(fields: Mapping[str, Any]) -> int | None:
    """Return the context window an item states, under whichever name."""
    places = (fields, fields.get("meta"), fields.get("top_provider"), fields.get("limits"))
    for place in places:
        if isinstance(place, Mapping):
            for name in _CONTEXT_FIELDS:
                value = place.get(name)
                if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100_000_000:
                    return value
    return None
