"""The one door to models: which endpoint, which catalogue, which model a run uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_chat.models.settings import LocalModelSettings
from popagent_kit.settings import reveal
from popagent_models.catalogue import FETCH_TIMEOUT_S, Catalogue, CatalogueView
from popagent_models.client import AdmissionPort, ModelClient, Timeouts
from popagent_models.endpoint import Endpoint, endpoint
from popagent_models.errors import ModelProviderError
from popagent_models.profile import ModelProfile, profile_for
from popagent_models.routing import Route, resolve
from popagent_models.settings import ModelSettings
from popagent_models.usage import UsageSink
from popagent_proto.chat.models import ModelsView
from popagent_proto.chat.settings import AgentRuntimeView, ModelSource

# Weights are read from disk in a few seconds, on a busy machine in a minute.
LOADING_S: Final = 120.0


@dataclass(frozen=True)
class RoutedModel:
    """What a run needs to ask its model; its client stays the same until the run ends."""

    route: Route
    profile: ModelProfile
    client: ModelClient


class ModelEndpoint:
    """One place that answers, with its list of models; without an address every call says what to set."""

    def __init__(
        self, at: Endpoint | None, timeouts: Timeouts, admission: AdmissionPort | None, usage: UsageSink | None
    ) -> None:
        self.client = ModelClient(at, timeouts=timeouts, admission=admission, usage=usage)
        self.catalogue = Catalogue(self.client.upstream)

    async def close(self) -> None:
        """Close every connection."""
        await self.catalogue.close()
        await self.client.close()

    def why_unknown(self) -> str:
        """Say why there is no list of models."""
        if self.catalogue.last_error is not None:
            return self.catalogue.last_error.message
        return "The model server has not answered yet."


class ModelGateway:
    """The configured endpoint and the embedded one; the stored model source chooses between them."""

    def __init__(
        self,
        settings: ModelSettings,
        local: LocalModelSettings,
        *,
        admission: AdmissionPort | None = None,
        usage: UsageSink | None = None,
    ) -> None:
        self._configured_model = settings.model
        timeouts = Timeouts(settings.connect_timeout_s, settings.header_timeout_s, settings.idle_timeout_s)
        router = endpoint(settings.model_url, reveal(settings.model_key)) if settings.model_url else None
        embedded = endpoint(local.url, reveal(local.key)) if local.url else None
        self._router = ModelEndpoint(router, timeouts, admission, usage)
        self._local = ModelEndpoint(embedded, timeouts, admission, usage)

    async def view(self, runtime: AgentRuntimeView) -> ModelsView:
        """Return the catalogue as people see it; an endpoint that is silent is said in `note`."""
        source = self._source(runtime.model_source)
        found = await source.catalogue.models()
        return ModelsView(
            models=list(found.models),
            context_windows={
                name: found.context_windows[name] for name in found.models if name in found.context_windows
            },
            default_model=found.default_model(runtime.default_model, self._configured_model),
            known=found.known,
            note=_shown_in_part(found) if found.known else source.why_unknown(),
        )

    async def require_known(self, model: str, runtime: AgentRuntimeView, *, field: str) -> None:
        """Accept a model id from outside; raises an input error that names `field`."""
        await self._source(runtime.model_source).catalogue.check(model, field)

    async def route(
        self, runtime: AgentRuntimeView, *, override: str | None, override_is_seeded: bool, request: str | None
    ) -> RoutedModel:
        """Decide the model of a run; one that is still loading is waited for.

        Raises:
            ModelError: Nobody named a model, or its server does not answer.
        """
        source = self._source(runtime.model_source)
        source.client.upstream()  # refuses here when nothing is connected
        found = await source.catalogue.models()
        named = override or request or found.default_model(runtime.default_model, self._configured_model)
        if not found.known:
            if source is self._local:
                found = await source.catalogue.wait_until_known(LOADING_S)
            elif named is None:
                found = await source.catalogue.wait_until_known(FETCH_TIMEOUT_S)
            named = named or found.default_model(None)
            if named is None:
                raise ModelProviderError(source.why_unknown())
        default = found.default_model(runtime.default_model, self._configured_model)
        route = resolve(
            found, override=override, override_is_seeded=override_is_seeded, request=request, default=default
        )
        return RoutedModel(route, profile_for(route.model, found.context(route.model)), source.client)

    async def close(self) -> None:
        """Close every connection."""
        await self._router.close()
        await self._local.close()

    def _source(self, source: ModelSource) -> ModelEndpoint:
        if source == "auto":
            return self._router if self._router.client.endpoint is not None else self._local
        return self._router if source == "router" else self._local


def _shown_in_part(found: CatalogueView) -> str:
    total = len(found.models) + len(found.unlisted)
    return f"The first {len(found.models):,} of {total:,} models are listed." if found.unlisted else ""
