"""The one door to models: which endpoint, which catalogue, which model a run uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_chat.models.settings import LocalModelSettings
from popagent_kit.settings import reveal
from popagent_models.catalogue import Catalogue, CatalogueView
from popagent_models.client import AdmissionPort, ModelClient
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
    """What a run needs to ask its model."""

    route: Route
    profile: ModelProfile


class ModelGateway:
    """One client and one catalogue; the endpoint follows the stored model source."""

    def __init__(
        self,
        settings: ModelSettings,
        local: LocalModelSettings,
        *,
        admission: AdmissionPort | None = None,
        usage: UsageSink | None = None,
    ) -> None:
        self._settings = settings
        self._router = endpoint(settings.model_url, reveal(settings.model_key)) if settings.model_url else None
        self._local = endpoint(local.url, reveal(local.key)) if local.url else None
        self.client = ModelClient.from_settings(settings, admission=admission, usage=usage)
        self.catalogue = Catalogue(self.client.upstream)

    async def view(self, runtime: AgentRuntimeView) -> ModelsView:
        """Return the catalogue as people see it; an endpoint that is silent is said in `note`."""
        found = await self._catalogue_of(runtime)
        return ModelsView(
            models=list(found.models),
            context_windows={
                name: found.context_windows[name] for name in found.models if name in found.context_windows
            },
            default_model=found.default_model(runtime.default_model, self._settings.model),
            known=found.known,
            note=_shown_in_part(found) if found.known else self._why_unknown(),
        )

    async def require_known(self, model: str, runtime: AgentRuntimeView, *, field: str) -> None:
        """Accept a model id from outside; raises an input error that names `field`."""
        await self._follow(runtime.model_source)
        await self.catalogue.check(model, field)

    async def route(
        self, runtime: AgentRuntimeView, *, override: str | None, override_is_seeded: bool, request: str | None
    ) -> RoutedModel:
        """Decide the model of a run; the embedded one may still be loading, and is waited for.

        Raises:
            ModelError: Nobody named a model, or its server does not answer.
        """
        found = await self._catalogue_of(runtime)
        if not found.known and self.client.endpoint is not None and self.client.endpoint == self._local:
            found = await self.catalogue.wait_until_known(LOADING_S)
        default = found.default_model(runtime.default_model, self._settings.model)
        if not found.known and not (override or request or default):
            raise ModelProviderError(self._why_unknown())
        route = resolve(
            found, override=override, override_is_seeded=override_is_seeded, request=request, default=default
        )
        return RoutedModel(route, profile_for(route.model, found.context(route.model)))

    async def close(self) -> None:
        """Close every connection."""
        await self.catalogue.close()
        await self.client.close()

    async def _catalogue_of(self, runtime: AgentRuntimeView) -> CatalogueView:
        await self._follow(runtime.model_source)
        return await self.catalogue.models()

    async def _follow(self, source: ModelSource) -> None:
        await self.client.use(self._endpoint_of(source))

    def _endpoint_of(self, source: ModelSource) -> Endpoint | None:
        if source == "auto":
            return self._router or self._local
        if source == "router":
            return self._router
        return self._local

    def _why_unknown(self) -> str:
        if self.catalogue.last_error is not None:
            return self.catalogue.last_error.message
        return "The model server has not answered yet."


def _shown_in_part(found: CatalogueView) -> str:
    total = len(found.models) + len(found.unlisted)
    return f"The first {len(found.models):,} of {total:,} models are listed." if found.unlisted else ""
