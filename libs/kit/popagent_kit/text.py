"""Bounded text for messages, logs and prompts, and what a header can carry."""

from __future__ import annotations


def excerpt(text: str, limit: int) -> str:
    """Return `text` cut to `limit` characters, the last one an ellipsis when something was cut."""
    return text if len(text) <= limit else text[: max(0, limit - 1)] + "…"


def one_line(text: str, limit: int = 200) -> str:
    """Return `text` with every run of white space as one blank, cut to `limit` characters."""
    return excerpt(" ".join(text.split()), limit)


def fits_a_header(text: str) -> bool:
    """Tell whether an HTTP header carries `text` as it is: printable ASCII without blanks at its ends."""
    return text.isascii() and text.isprintable() and text == text.strip()
