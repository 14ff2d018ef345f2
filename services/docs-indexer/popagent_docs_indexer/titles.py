"""What a page is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from popagent_docs_indexer.markdown.chunking import Heading
from popagent_docs_indexer.markdown.front_matter import front_matter
from popagent_docs_indexer.paths import DocPath
from popagent_kit.text import one_line

LONGEST: Final = 200


def title_of(body: str, headings: Sequence[Heading], path: DocPath) -> str:
    """Return the title of the front matter, else the first heading of the first level, else the name of the file."""
    said = front_matter(body).get("title")
    if isinstance(said, str) and said.strip():
        return one_line(said.replace("\x00", ""), LONGEST)
    heading = next((each.text for each in headings if each.level == 1 and each.text), None)
    return one_line(heading or path.name.rpartition(".")[0], LONGEST)
