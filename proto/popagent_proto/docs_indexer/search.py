"""Search in documentation: sections of pages, the best first."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import ListView, Query, Text, View
from popagent_proto.docs_indexer.pages import PathText

MOST_HITS: Final = 50

SearchWords = Annotated[
    Text,
    Field(
        max_length=200_000,
        description="Words, names, a question; nothing in it is an operator, and of a long one the beginning counts.",
    ),
]


class SnippetPart(View):
    """A piece of a text, one after another; what was searched for is marked."""

    text: str
    marked: bool = False


class DocHit(View):
    """A section that was found."""

    workspace_id: Id
    page_id: Id
    path: str
    title: str
    heading: list[str] = Field(description="The heading and those above it; none above the first one of a page.")
    anchor: str = Field(description="Of the heading, as a link to the page ends in it; empty above the first one.")
    snippet: list[SnippetPart]
    score: float = Field(description="Comparable within one answer alone.")
    matched: Literal["words"] = Field(default="words", description="What it was found by.")


class DocHits(ListView):
    """The best first; of several words those are found best that have the rarest of them."""

    items: list[DocHit]
    corrected: list[str] = Field(
        default_factory=list, description="Words that stand nowhere and were taken for others, as “woord → word”."
    )


class SearchDocs(Query[DocHits]):
    """Search the pages of one workspace, or of all of them; a query without a word finds nothing."""

    subject: ClassVar = "popagent.docs-indexer.qry.search-run.v1"

    q: SearchWords
    workspace_id: Id | None = None
    folder: PathText | None = Field(default=None, description="Of the workspace: only what is below it.")
    limit: int = Field(default=10, ge=1, le=MOST_HITS)
