"""Texts that were made to be slow to draw, for stories and the benchmark of the page."""

from __future__ import annotations

from typing import Final

SLOW: Final = {
    "20,000 brackets": "[" * 20_000,
    "20,000 closed brackets": "[" * 10_000 + "]" * 10_000,
    "20,000 links": "[a](" * 20_000,
    "20,000 images": "![" * 20_000,
    "20,000 stars": "*a " * 20_000,
    "20,000 underscores": "_" * 20_000 + "a",
    "2,000 quotes": ">" * 2_000 + " deep",
    "20,000 backticks": "`" * 20_000 + "a",
    "20,000 parts": "a ~~ " * 20_000,
    "a deep list": "\n".join("  " * depth + "- x" for depth in range(300)),
    "a wide table": "|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + ("|" + "b|" * 300 + "\n") * 60,
    "a long word": "w" * 200_000,
    "many lines": "line\n" * 20_000,
}
