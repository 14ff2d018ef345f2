"""What a page is called."""

from __future__ import annotations

from popagent_docs_indexer.paths import DocPath


def title_of(body: str, path: DocPath) -> str:
    """Return the name of the file without its ending."""
    del body
    return path.name.rpartition(".")[0]
