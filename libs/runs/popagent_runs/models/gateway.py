"""The one door to models: which endpoint, which catalogue, which model a run uses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from popagent_models.catalogue import FETCH_TIMEOUT_S, FIRST_WAIT_S, CatalogueView
from popagent_models.client import AdmissionPort, ModelClient
from popagent_models.errors import NOT_CONNECTED, ModelConfigurationError, ModelProviderError, ModelRequestError
from popagent_models.profile import ModelProfile, profile_for
from popagent_models.routing import Route, resolve
from popagent_models.settings import ModelSettings
from popagent_models.usage import UsageSink
from popagent_proto.chat.models import ConnectionSource, ModelsView
from popagent_runs.models.choice import ModelChoice
from popagent_runs.models.endpoints import LOADING_S, Endpoints, ModelEndpoint
from popagent_runs.models.settings import LocalModelSettings
from popagent_runs.secrets import SecretsPort

LOADING: Final = (
    "The embedded model is not ready. It loads for some seconds, on a busy machine for a minute, and is started again "
    "when it fails."
)


@dataclass(frozen=True)
class RoutedModel:
    """What a run needs to ask its model; its client stays the same until `release` is called, once, at its end.

    `for_agent(override, override_is_seeded)` decides the model of another agent of this run, asked by the same client;
    it raises ModelError as `route` does.
    """

    route: Route
    profile: ModelProfile
    client: ModelClient
    for_agent: Callable[[str | None, bool], tuple[Route, ModelProfile]]
    release: Callable[[], None]


@dataclass(frozen=True)
class ModelState:
    """Which model would answer now; `trouble` says why none would, and what to do."""

    source: ConnectionSource
    host: str | None
    model: str | None
    trouble: str


class ModelGateway:
    """What is stored chooses, call by call, between the environment's endpoint, the page's and the embedded one."""

    def __init__(
        self,
        settings: ModelSettings,
        local: LocalModelSettings,
        secrets: SecretsPort,
        *,
        admission: AdmissionPort | None = None,
        usage: UsageSink | None = None,
    ) -> None:
        self.configured_model = settings.model
        self.endpoints = Endpoints(settings, local, secrets, admission, usage)

    async def view(self, choice: ModelChoice) -> ModelsView:
        """Return the catalogue as people see it; an endpoint that is silent is said in `note`."""
        with self.endpoints.borrowed(choice) as (_, source):
            found = await source.catalogue.models()
            return ModelsView(
                models=list(found.models),
                context_windows={
                    name: found.context_windows[name] for name in found.models if name in found.context_windows
                },
                default_model=self._default(found, choice),
                known=found.known,
                note=_shown_in_part(found) if found.known else source.why_unknown(),
            )

    async def state(self, choice: ModelChoice, *, wait_s: float = FIRST_WAIT_S) -> ModelState:
        """Say which model would answer, waiting at most `wait_s` for a list that is not known yet."""
        with self.endpoints.borrowed(choice) as (kind, source):
            try:
                found = await asyncio.wait_for(source.catalogue.models(), wait_s)
            except TimeoutError:
                found = source.catalogue.last_told()
            model = self._default(found, choice)
            at = source.client.endpoint
            return ModelState(kind, at.host if at else None, model, self._trouble(kind, source, found, model, choice))

    async def offered(self, choice: ModelChoice) -> CatalogueView:
        """Return the models that the next run could use; unknown while their server does not tell."""
        with self.endpoints.borrowed(choice) as (_, source):
            return await source.catalogue.models()

    async def require_known(self, model: str, choice: ModelChoice, *, field: str) -> None:
        """Accept a model id from outside; raises an input error that names `field`."""
        with self.endpoints.borrowed(choice) as (_, source):
            await source.catalogue.check(model, field)

    async def route(
        self, choice: ModelChoice, *, override: str | None, override_is_seeded: bool, request: str | None
    ) -> RoutedModel:
        """Decide the model of a run; one that is still loading is waited for.

        Raises:
            ModelError: Nobody named a model, or its server does not answer.
        """
        source = self.endpoints.chosen(choice)[1]
        if source.trouble:
            raise ModelConfigurationError(source.trouble)
        source.client.upstream()  # refuses here when nothing is connected
        self.endpoints.take(source)
        try:
            found = await self._catalogue_for(source, choice, override or request)
            default = self._default(found, choice)

            def for_agent(override: str | None, override_is_seeded: bool) -> tuple[Route, ModelProfile]:
                route = resolve(
                    found,
                    override=override,
                    override_is_seeded=override_is_seeded,
                    request=request,
                    default=default,
                )
                return route, profile_for(route.model, found.context(route.model))

            route, profile = for_agent(override, override_is_seeded)
        except BaseException:
            self.endpoints.give_back(source)
            raise
        return RoutedModel(route, profile, source.client, for_agent, lambda: self.endpoints.give_back(source))

    async def close(self) -> None:
        """Close every connection."""
        await self.endpoints.close()

    async def _catalogue_for(self, source: ModelEndpoint, choice: ModelChoice, named: str | None) -> CatalogueView:
        found = await source.catalogue.models()
        named = named or self._default(found, choice)
        if not found.known:
            if source is self.endpoints.embedded:
                found = await source.catalogue.wait_until_known(LOADING_S)
            elif named is None:
                found = await source.catalogue.wait_until_known(FETCH_TIMEOUT_S)
            if named is None and found.default_model(None) is None:
                raise ModelProviderError(source.why_unknown())
        return found

    def _default(self, found: CatalogueView, choice: ModelChoice) -> str | None:
        return found.default_model(choice.runtime.default_model, self.configured_model)

    def _trouble(
        self,
        kind: ConnectionSource,
        source: ModelEndpoint,
        found: CatalogueView,
        model: str | None,
        choice: ModelChoice,
    ) -> str:
        if kind == "none":
            only = choice.runtime.model_source
            return (
                NOT_CONNECTED if only == "auto" else f"The setting modelSource allows “{only}” alone. {NOT_CONNECTED}"
            )
        if source.trouble:
            return source.trouble
        error = source.catalogue.last_error
        if not found.known or error is not None:
            # Some servers refuse to list; a model that somebody named may answer all the same.
            if isinstance(error, ModelRequestError) and model is not None:
                return ""
            return LOADING if kind == "embedded" else source.why_unknown()
        if model is None:
            return "The model server lists no model that can hold a conversation. Load one there."
        if not found.accepts(model):
            return f"The model server does not offer the chosen model “{model}”. Choose another one in the settings."
        return ""


def _shown_in_part(found: CatalogueView) -> str:
    total = len(found.models) + len(found.unlisted)
    return f"The first {len(found.models):,} of {total:,} models are listed." if found.unlisted else ""
