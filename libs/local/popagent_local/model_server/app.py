"""The door of the model server: OpenAI's paths over the chat model and the embedder, behind a key."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from popagent_kit.errors import AppError, NotFoundError, UnavailableError
from popagent_local.model_server import chat, embedding_route, shim
from popagent_local.model_server.artefacts import EMBEDDING_MODEL_ID
from popagent_local.model_server.door import KeyRequired, json_body, on_app_error, on_http_error, until_client_leaves
from popagent_local.model_server.embeddings import DIMENSIONS, MAX_TOKENS, Embedder
from popagent_local.model_server.grammar import Grammars
from popagent_local.model_server.upstream import Upstream
from popagent_local.model_server.warm_up import QuestionsFirst, WarmUp

CHAT_PATH: Final = "/v1/chat/completions"
LOADING_RETRY_S: Final = 2


class UnknownModelError(NotFoundError):
    """There is no model of this name here."""

    code = "model_not_found"


@dataclass
class Models:
    """What is served. `upstream` and `embedder` are None until they are loaded."""

    api_key: str = field(repr=False)
    chat_id: str
    context: int
    grammars: Grammars
    upstream: Upstream | None = None
    embedder: Embedder | None = None
    warm_up: WarmUp = field(default_factory=WarmUp)
    began_at: int = field(default_factory=lambda: int(time.time()))

    @property
    def ready(self) -> bool:
        """Tell whether every model is loaded."""
        return self.upstream is not None and self.embedder is not None


def build_app(models: Models) -> ASGIApp:
    """Return the application."""
    routes = [
        Route("/health", _health),
        Route("/v1/models", _list_models),
        Route(CHAT_PATH, _chat, methods=["POST"]),
        Route("/v1/warm-up", _warm_up, methods=["POST"]),
        Route("/v1/embeddings", _embeddings, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={AppError: on_app_error, HTTPException: on_http_error})
    app.state.models = models
    return KeyRequired(QuestionsFirst(app, models.warm_up, CHAT_PATH), models.api_key)


async def _health(request: Request) -> Response:
    models: Models = request.app.state.models
    status = "ok" if models.ready else "loading"
    ahead = {"reads": models.warm_up.reads, "tokensRead": models.warm_up.tokens}
    return JSONResponse({"status": status, "warmUp": ahead}, 200 if models.ready else 503)


async def _list_models(request: Request) -> Response:
    models: Models = request.app.state.models
    if models.upstream is None:
        # A list would say that these models can be asked.
        raise UnavailableError("The models are loading.", retry_after_s=LOADING_RETRY_S)
    common = {"object": "model", "created": models.began_at, "owned_by": "popagent"}
    chat_model = {"id": models.chat_id, **common, "type": "chat", "context_length": models.context}
    embedding = {"type": "embedding", "context_length": MAX_TOKENS, "dimensions": DIMENSIONS}
    return JSONResponse({"object": "list", "data": [chat_model, {"id": EMBEDDING_MODEL_ID, **common, **embedding}]})


async def _chat(request: Request) -> Response:
    models: Models = request.app.state.models
    upstream, plan = await _asked(request, models)
    return await until_client_leaves(request, chat.answer(upstream, models.grammars, plan))


async def _warm_up(request: Request) -> Response:
    """Read the prompt of a chat request that nobody makes yet, so that one which begins alike is answered sooner."""
    models: Models = request.app.state.models
    upstream, plan = await _asked(request, models)
    found = await until_client_leaves(request, models.warm_up.read(upstream, plan))
    return found if isinstance(found, Response) else JSONResponse({"read": found})


async def _asked(request: Request, models: Models) -> tuple[Upstream, shim.Plan]:
    """Return whom to ask and what, for a chat request."""
    body = await json_body(request)
    plan = shim.plan(body)
    _check_model(body, models.chat_id)
    if models.upstream is None:
        raise UnavailableError("The chat model is loading.", retry_after_s=LOADING_RETRY_S)
    return models.upstream, plan


async def _embeddings(request: Request) -> Response:
    models: Models = request.app.state.models
    body = await json_body(request)
    wanted = embedding_route.parse(body)
    _check_model(body, EMBEDDING_MODEL_ID)
    if models.embedder is None:
        raise UnavailableError("The embedding model is loading.", retry_after_s=LOADING_RETRY_S)
    found = await until_client_leaves(request, embedding_route.embed(models.embedder, wanted))
    return found if isinstance(found, Response) else JSONResponse(found)


def _check_model(body: dict[str, Any], served: str) -> None:
    wanted = body.get("model")
    if wanted is not None and wanted != served:
        raise UnknownModelError(f"This path has the model {served}, no other.", field="model")
