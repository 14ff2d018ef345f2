"""Places that answer: the environment's, the page's, the embedded one; a run that has begun keeps its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pydantic import SecretStr

from popagent_kit.errors import AppError
from popagent_kit.settings import reveal
from popagent_models.catalogue import SHORTEST_KEY, Catalogue
from popagent_models.client import AdmissionPort, ModelClient, Timeouts
from popagent_models.endpoint import Endpoint, endpoint
from popagent_models.settings import ModelSettings
from popagent_models.usage import UsageSink
from popagent_proto.chat.models import ConnectionSource
from popagent_runs.models.choice import NAME, RESOURCE, ModelChoice, StoredConnection
from popagent_runs.models.settings import LocalModelSettings
from popagent_runs.secrets import SecretsPort
from popagent_telemetry import register_secret

# A shorter key would be told half by its hint.
HINT_CHARACTERS: Final = 4
SHORTEST_HINTED: Final = 16
# Weights are read from disk in a few seconds, on a busy machine in a minute.
LOADING_S: Final = 120.0


class ModelEndpoint:
    """One place that answers, with its list of models; `trouble` says why it cannot be asked at all."""

    def __init__(
        self,
        at: Endpoint | None,
        timeouts: Timeouts,
        admission: AdmissionPort | None = None,
        usage: UsageSink | None = None,
        *,
        trouble: str = "",
        starting_s: float = 0.0,
    ) -> None:
        self.client = ModelClient(at, timeouts=timeouts, admission=admission, usage=usage)
        self.catalogue = Catalogue(self.client.upstream, starting_s=starting_s)
        self.trouble = trouble
        self.users = 0

    async def close(self) -> None:
        """Close every connection."""
        await self.catalogue.close()
        await self.client.close()

    def why_unknown(self) -> str:
        """Say why there is no list of models."""
        if self.trouble:
            return self.trouble
        if self.catalogue.last_error is not None:
            return self.catalogue.last_error.message
        return "The model server has not answered yet."


class Endpoints:
    """Chooses by the settings; another saved connection gets an endpoint of its own, the one before ends with its runs.

    The environment's address goes before the saved one.
    """

    def __init__(
        self,
        settings: ModelSettings,
        local: LocalModelSettings,
        secrets: SecretsPort,
        admission: AdmissionPort | None,
        usage: UsageSink | None,
    ) -> None:
        self._timeouts = Timeouts(settings.connect_timeout_s, settings.header_timeout_s, settings.idle_timeout_s)
        self._admission = admission
        self._usage = usage
        self._secrets = secrets
        given = endpoint(settings.model_url, reveal(settings.model_key)) if settings.model_url else None
        embedded = endpoint(local.url, reveal(local.key)) if local.url else None
        # Its program is started when we are.
        self.embedded = self._made(embedded, starting_s=LOADING_S)
        self._given = self._made(given)
        self._nothing = self._made(None)
        self._saved = self._nothing
        self._saved_as: tuple[str | None, str | None] = (None, None)
        self._retired: set[ModelEndpoint] = set()
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def given(self) -> Endpoint | None:
        """What the environment names."""
        return self._given.client.endpoint

    def chosen(self, choice: ModelChoice) -> tuple[ConnectionSource, ModelEndpoint]:
        """Return what the next run uses, and where that comes from."""
        configured = self._configured(choice.connection)
        wanted = choice.runtime.model_source
        if wanted == "local" or (wanted == "auto" and configured[0] == "none"):
            return ("embedded" if self.embedded.client.endpoint else "none"), self.embedded
        return configured

    @contextmanager
    def borrowed(self, choice: ModelChoice) -> Iterator[tuple[ConnectionSource, ModelEndpoint]]:
        """Give what `chosen` returns; the endpoint is not closed within the block."""
        kind, endpoint = self.chosen(choice)
        self.take(endpoint)
        try:
            yield kind, endpoint
        finally:
            self.give_back(endpoint)

    def take(self, endpoint: ModelEndpoint) -> None:
        """Keep the endpoint open until it is given back."""
        endpoint.users += 1

    def give_back(self, endpoint: ModelEndpoint) -> None:
        """End a use; the last one of a connection that is no longer wanted closes it."""
        endpoint.users -= 1
        self._close_unused()

    def key_of(self, connection: StoredConnection) -> SecretStr | None:
        """Return the stored key.

        Raises:
            SecretKeyError, SecretUnreadableError: It is there and cannot be read.
        """
        if connection.sealed is None:
            return None
        return self._secrets.open(bytes.fromhex(connection.sealed), RESOURCE, NAME)

    async def close(self) -> None:
        """Close every connection, those in use too."""
        for each in (self._given, self.embedded, self._saved, *self._retired):
            await each.close()
        await asyncio.gather(*self._closing)

    def _configured(self, connection: StoredConnection) -> tuple[ConnectionSource, ModelEndpoint]:
        if self.given is not None:
            return "environment", self._given
        wanted = (connection.url, connection.sealed)
        if wanted != self._saved_as:
            before, self._saved, self._saved_as = self._saved, self._opened(connection), wanted
            if before is not self._nothing:
                self._retired.add(before)
                self._close_unused()
        return ("page" if connection.url else "none"), self._saved

    def _opened(self, connection: StoredConnection) -> ModelEndpoint:
        if connection.url is None:
            return self._nothing
        try:
            key = reveal(self.key_of(connection))
        except AppError as error:
            return self._made(None, trouble=unreadable(error))
        redact_from_now_on(key)
        return self._made(Endpoint(connection.url, key))

    def _made(self, at: Endpoint | None, trouble: str = "", starting_s: float = 0.0) -> ModelEndpoint:
        return ModelEndpoint(at, self._timeouts, self._admission, self._usage, trouble=trouble, starting_s=starting_s)

    def _close_unused(self) -> None:
        for unused in [each for each in self._retired if each.users == 0]:
            self._retired.discard(unused)
            task = asyncio.get_running_loop().create_task(unused.close(), name="close a model connection")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def unreadable(error: AppError) -> str:
    """Say what a stored key that cannot be read means for the connection."""
    return f"The key of the model connection cannot be used. {error.message} Or save the connection's key again."


def redact_from_now_on(key: str | None) -> None:
    """Keep a key out of logs and traces; one that is a mere word is not taken, which all texts would then lack."""
    if key is not None and len(key) >= SHORTEST_KEY:
        register_secret(key, "model key")


def hint_of(key: str | None) -> str | None:
    """Return what tells one key from another without telling it."""
    return key[-HINT_CHARACTERS:] if key is not None and len(key) >= SHORTEST_HINTED else None
