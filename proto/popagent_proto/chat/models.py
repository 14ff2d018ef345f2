"""Which models can answer."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from popagent_proto.base import Query, View


class ModelsView(View):
    """The catalogue; `known` is false while the endpoint does not answer, and any well-formed id is accepted then."""

    models: list[str]
    context_windows: dict[str, int] = Field(description="Tokens, by model; a model of unknown size is absent.")
    default_model: str | None
    known: bool = True
    note: str = Field(default="", description="Why the catalogue is unknown, and what to do, in words.")


class ListModels(Query[ModelsView]):
    """At most a minute old."""

    subject: ClassVar = "popagent.chat.qry.models-list.v1"
