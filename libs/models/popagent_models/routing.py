"""Which model a run uses: decided once, written into the run context, never decided again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from popagent_models.catalogue import CatalogueView
from popagent_models.errors import ModelConfigurationError

RouteSource = Literal["policy", "agent", "request", "task", "default"]


@dataclass(frozen=True, slots=True)
class Route:
    """The model of a run, who chose it, and why in one sentence."""

    model: str
    source: RouteSource
    reason: str


def resolve(
    catalogue: CatalogueView,
    *,
    policy: str | None = None,
    override: str | None = None,
    override_is_seeded: bool = False,
    request: str | None = None,
    task: str | None = None,
    default: str | None = None,
) -> Route:
    """Return the first choice in the order policy, agent override, request, task or schedule, default.

    A seeded override that a known catalogue lacks is passed over (requirement MD-3); one that somebody set is not.

    Raises:
        ModelConfigurationError: Nobody chose a model, and there is no default.
    """
    passed_over = ""
    if override and not policy and override_is_seeded and not catalogue.accepts(override):
        passed_over = f"The model server does not offer the agent's preset model {override}; inherited: "
        override = None
    choices: tuple[tuple[str | None, RouteSource, str], ...] = (
        (policy, "policy", "the policy of this work names it."),
        (override, "agent", "the agent's own setting names it."),
        (request, "request", "the request names it."),
        (task, "task", "the task or schedule names it."),
        (default, "default", "it is the default."),
    )
    for model, source, reason in choices:
        if model:
            return Route(model, source, passed_over + reason if passed_over else reason[0].upper() + reason[1:])
    raise ModelConfigurationError(
        "No model is chosen, and the model server lists none. Set POPAGENT_MODEL, or choose one in the settings."
    )
