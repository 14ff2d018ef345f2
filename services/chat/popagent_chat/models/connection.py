"""The connection that a person sets in the page: read, saved, forgotten, tried; and servers found on this machine."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps
from popagent_chat.models import store
from popagent_chat.models.choice import model_choice
from popagent_chat.secrets import store as secrets
from popagent_db.pool import Connection
from popagent_kit.errors import AppError, ConflictError, InvalidInputError, RateLimitedError, RevisionConflictError
from popagent_kit.settings import command as typed
from popagent_kit.settings import reveal
from popagent_models.detect import detect
from popagent_models.endpoint import AddressError, CredentialsError, Endpoint, address, same_server
from popagent_models.probe import probe
from popagent_proto.chat.models import (
    MOST_LISTED,
    AskModelConnection,
    ConnectionTestView,
    DetectedServer,
    DetectedServers,
    DetectModelServers,
    DropModelConnection,
    EmbeddedModelView,
    GetModelConnection,
    ModelConnectionChanged,
    ModelConnectionView,
    PutModelConnection,
)
from popagent_proto.chat.secrets import MODEL_KEY_PURPOSE
from popagent_runs.models.choice import NAME, NOTHING_STORED, RESOURCE, ModelChoice, StoredConnection
from popagent_runs.models.endpoints import hint_of, redact_from_now_on
from popagent_runs.models.gateway import ModelGateway

handlers = Handlers[ChatDeps]()

EMBEDDED_NOTE: Final = "It is small: it shows the system working. For real work connect a model of your own."
TESTS_AT_ONCE: Final = 4


class ConnectionGivenError(ConflictError):
    """POPAGENT_MODEL_URL names the model server, and it goes before the page."""

    code = "connection_given"


@handlers.answers(GetModelConnection)
async def get_connection(deps: ChatDeps, query: GetModelConnection) -> ModelConnectionView:
    """Return the connection as the next run would find it."""
    async with deps.pool.acquire() as conn:
        choice = await model_choice(conn)
    return await _view(deps.models, choice)


@handlers.answers(PutModelConnection)
async def put_connection(deps: ChatDeps, command: PutModelConnection) -> ModelConnectionView:
    """Store address and key in one transaction; the next run reads them."""
    if deps.models.endpoints.given is not None:
        raise ConnectionGivenError(
            "POPAGENT_MODEL_URL names the model server, and it goes before the page. "
            f"To choose here, remove it from the environment or .env and start again (`{typed('config')}` shows where)."
        )
    url = checked_address(command.url)
    keeps_key = "sealed_key" not in command.model_fields_set
    key = deps.keyring.received(command.sealed_key, MODEL_KEY_PURPOSE) if command.sealed_key else None
    async with deps.outbox.transaction() as conn:
        stored = await store.LOCK.first(conn) or NOTHING_STORED
        if stored.revision != command.revision:
            raise RevisionConflictError(extra={"connection": _conflicting(stored)})
        if keeps_key and stored.sealed and not (stored.url and same_server(stored.url, url)):
            raise InvalidInputError(
                "The stored key belongs to another server. Give the key of this one, or null for none.", field="key"
            )
        if key is not None:
            sealed = deps.keyring.seal(key, RESOURCE, NAME)
            await secrets.PUT.run(conn, RESOURCE, NAME, deps.keyring.key_id(), sealed)
        elif not keeps_key:
            await secrets.DROP.run(conn, RESOURCE, NAME)
        await _save(deps, conn, url, has_key=key is not None or (keeps_key and stored.sealed is not None))
        choice = await model_choice(conn)
    deps.next_turn_changed()
    return await _view(deps.models, choice)


@handlers.answers(DropModelConnection)
async def drop_connection(deps: ChatDeps, command: DropModelConnection) -> ModelConnectionView:
    """Forget address and key; what the environment names stays."""
    async with deps.outbox.transaction() as conn:
        stored = await store.LOCK.first(conn) or NOTHING_STORED
        await secrets.DROP.run(conn, RESOURCE, NAME)
        if stored.url is not None or stored.sealed is not None:
            await _save(deps, conn, None, has_key=False)
        choice = await model_choice(conn)
    deps.next_turn_changed()
    return await _view(deps.models, choice)


@handlers.answers(AskModelConnection)
async def ask_connection(deps: ChatDeps, query: AskModelConnection) -> ConnectionTestView:
    """Ask the server; it gets a key only when one came along, or when it is the connection's own server."""
    url = checked_address(query.url)
    async with deps.pool.acquire() as conn:
        choice = await model_choice(conn)
    if "sealed_key" in query.model_fields_set:
        key = reveal(deps.keyring.received(query.sealed_key, MODEL_KEY_PURPOSE)) if query.sealed_key else None
    else:
        key = _own_key(deps.models, choice.connection, url)
    if deps.connection_tests.locked():
        raise RateLimitedError("Other connections are being tested. Try again in a moment.", retry_after_s=5)
    redact_from_now_on(key)
    async with deps.connection_tests:
        found = await probe(Endpoint(url, key), model=query.model, preferred=choice.runtime.default_model)
    return ConnectionTestView(
        ok=found.kind == "ok",
        class_=found.kind,
        sentence=found.sentence,
        models=list(found.models[:MOST_LISTED]),
        model_count=len(found.models),
        latency_ms=found.latency_ms,
        answered_by=found.answered_by,
    )


@handlers.answers(DetectModelServers)
async def detect_servers(deps: ChatDeps, query: DetectModelServers) -> DetectedServers:
    """Look around once; what is found is only told."""
    found = await detect(deps.own_ports | set(query.own_ports))
    return DetectedServers(
        items=[
            DetectedServer(
                name=each.name, url=each.url, models=list(each.models[:MOST_LISTED]), needs_key=each.needs_key
            )
            for each in found
        ]
    )


def checked_address(text: str) -> str:
    """Return the base URL of what a person typed in the page.

    Raises:
        InvalidInputError: It is no http(s) URL, or holds more than scheme, host, port and path.
    """
    url = text.strip()
    if any(char.isspace() or not char.isprintable() for char in url):
        raise InvalidInputError("The address must not contain blanks or control characters.", field="url")
    try:
        base = address(url)
    except AddressError as error:
        advice = " Put the key into its own field." if isinstance(error, CredentialsError) else ""
        raise InvalidInputError(f"The address {error}{advice}", field="url") from error
    if urlsplit(url).query or urlsplit(url).fragment:
        raise InvalidInputError("The address must end with its path, without ? or #.", field="url")
    return base


async def _save(deps: ChatDeps, conn: Connection, url: str | None, *, has_key: bool) -> None:
    revision = await store.SAVE.one(conn, url)
    event = ModelConnectionChanged(aggregate_id="model-connection", version=revision, url=url, has_key=has_key)
    await deps.outbox.add(conn, event)


def _conflicting(stored: StoredConnection) -> dict[str, object]:
    return {"url": stored.url, "hasKey": stored.sealed is not None, "revision": stored.revision}


def _own_key(models: ModelGateway, stored: StoredConnection, url: str) -> str | None:
    given = models.endpoints.given
    if given is not None:
        return given.key if same_server(given.url, url) else None
    if stored.url is None or not same_server(stored.url, url):
        return None
    return reveal(models.endpoints.key_of(stored))


async def _view(models: ModelGateway, choice: ModelChoice) -> ModelConnectionView:
    state = await models.state(choice)
    given, stored = models.endpoints.given, choice.connection
    key, has_key = (given.key, given.key is not None) if given else (None, stored.sealed is not None)
    if given is None and has_key:
        try:
            key = reveal(models.endpoints.key_of(stored))
        except AppError:
            key = None  # `last_error` says it
    embedded = models.endpoints.embedded
    available = embedded.client.endpoint is not None
    listed = (await embedded.catalogue.models()).models if state.source == "embedded" else ()
    return ModelConnectionView(
        source=state.source,
        url=given.url if given else stored.url,
        has_key=has_key,
        key_hint=hint_of(key),
        model=state.model,
        last_error=state.trouble or None,
        embedded=EmbeddedModelView(
            available=available,
            model=next(iter(listed), None),
            note=EMBEDDED_NOTE if available else _why_not_embedded(given),
        ),
        revision=stored.revision,
    )


def _why_not_embedded(given: Endpoint | None) -> str:
    if given is not None:
        return "It does not run, because POPAGENT_MODEL_URL names another server."
    return f"It does not run: its weights are not here. Get them with `{typed('model pull')}`, then start again."
