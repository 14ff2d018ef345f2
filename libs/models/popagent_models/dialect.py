"""Small differences between servers, learnt from a refusal: one is asked again without what it does not know."""

from __future__ import annotations

import re
from typing import Any, Final

from popagent_models import text_tools

_UNKNOWN_FIELD: Final = re.compile(
    r"extra (?:inputs|fields)|(?:unknown|unrecognized|unexpected|unsupported) (?:field|parameter|argument|property)",
    re.I,
)


def adapted(body: dict[str, Any], status: int, detail: str) -> dict[str, Any] | None:
    """Return the body to try instead, None when the refusal is not about one of the known differences."""
    if text_tools.refuses_tools(detail) and text_tools.speaks_of_tools(body):
        return text_tools.in_words(body)
    if status not in {400, 422}:
        return None
    if "max_tokens" in body and "max_completion_tokens" in detail:
        rest = {key: value for key, value in body.items() if key != "max_tokens"}
        return {**rest, "max_completion_tokens": body["max_tokens"]}
    if "temperature" in body and "temperature" in detail:
        return {key: value for key, value in body.items() if key != "temperature"}
    refused = "stream_options" in detail or "include_usage" in detail or _UNKNOWN_FIELD.search(detail)
    if "stream_options" in body and refused:
        return {key: value for key, value in body.items() if key != "stream_options"}
    return None


class Dialect:
    """Remembers for one endpoint which models were found to differ, so that each difference costs one call only."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[int, str]]] = {}

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body in the form this model is known to take."""
        for status, detail in self._known.get(body["model"], ()):
            body = adapted(body, status, detail) or body
        return body

    def learn(self, body: dict[str, Any], status: int, detail: str) -> dict[str, Any] | None:
        """Return the body to try instead and remember why; None when this refusal is final."""
        changed = adapted(body, status, detail)
        if changed is not None and len(self._known) < 1_000:
            self._known.setdefault(body["model"], []).append((status, detail))
        return changed
