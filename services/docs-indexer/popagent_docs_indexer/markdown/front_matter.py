"""What stands above a page between two lines of dashes."""

from __future__ import annotations

from typing import Any, Final

import yaml

from popagent_docs_indexer.markdown.blocks import front_matter_end, line_starts

LONGEST: Final = 20_000
# Brackets; what nests deeper than any front matter takes the parser long.
MOST_NESTED: Final = 200
# Every value as it is written: `true` and dates are texts. Nothing is made of what a tag names.
_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def front_matter(text: str) -> dict[str, Any]:
    """Return its fields; none when it is missing, long, or no YAML mapping."""
    head = text[: LONGEST + 10]
    if not head.removeprefix("\ufeff").startswith("---"):
        return {}
    starts = line_starts(head)
    lines = front_matter_end(head, starts)
    if lines < 2:
        return {}
    fields = head[starts[1] : starts[lines - 1]]
    if fields.count("[") + fields.count("{") + fields.count("- - ") > MOST_NESTED:
        return {}
    try:
        found = yaml.load(fields, _LOADER)  # noqa: S506 (its loader makes nothing but texts, lists and mappings)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if isinstance(name, str)} if isinstance(found, dict) else {}
