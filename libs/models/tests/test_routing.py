from __future__ import annotations

import pytest

from popagent_models.catalogue import UNKNOWN, CatalogueView
from popagent_models.errors import ModelConfigurationError
from popagent_models.routing import resolve

SPARK = "cx/gpt-5.3-codex-spark"
EVERYTHING = {"policy": "p", "override": "o", "request": "r", "task": "t", "default": "d"}


@pytest.mark.parametrize(
    ("missing", "model", "source"),
    [
        ([], "p", "policy"),
        (["policy"], "o", "agent"),
        (["policy", "override"], "r", "request"),
        (["policy", "override", "request"], "t", "task"),
        (["policy", "override", "request", "task"], "d", "default"),
    ],
)
def test_the_first_choice_in_order_wins(missing: list[str], model: str, source: str) -> None:
    choices = {name: value for name, value in EVERYTHING.items() if name not in missing}

    route = resolve(UNKNOWN, **choices)

    assert (route.model, route.source) == (model, source)
    assert route.reason.endswith(".")


def test_a_seeded_override_that_the_catalogue_lacks_is_inherited_with_the_reason() -> None:
    view = CatalogueView(("qwen",), known=True)

    route = resolve(view, override=SPARK, override_is_seeded=True, default="qwen")

    assert (route.model, route.source) == ("qwen", "default")
    assert SPARK in route.reason


@pytest.mark.parametrize(
    ("view", "seeded"),
    [(UNKNOWN, True), (CatalogueView((SPARK,), known=True), True), (CatalogueView(("qwen",), known=True), False)],
)
def test_an_override_stands_when_the_catalogue_is_unknown_has_it_or_somebody_set_it(
    view: CatalogueView, seeded: bool
) -> None:
    route = resolve(view, override=SPARK, override_is_seeded=seeded, request="r", default="qwen")

    assert (route.model, route.source) == (SPARK, "agent")


def test_no_choice_at_all_says_what_to_set() -> None:
    with pytest.raises(ModelConfigurationError, match="POPAGENT_MODEL"):
        resolve(UNKNOWN)
