"""The provider of models stays swappable: none is named outside of the library of models, no client of one is used."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from popagent_kit.settings import clone_root

ROOT = clone_root() or Path()
VENDORS: Final = re.compile(
    r"anthropic|claude|codex|cohere|deepseek|fireworks|gemini|groq|llama|mistral|mixtral|ollama|openai|openrouter|qwen",
    re.I,
)
# The shape of an API that many servers speak is no vendor's any more; names of files are what they are.
MEANT: Final = re.compile(
    r'OpenAI-compatible|not-openai|"(?:claude\.md|claude\.local\.md|\.claude|gemini\.md|\.gemini|\.codex)", _INSTRUCTS'
)
# The one library that knows models, the server that popagent brings, and the model that tests script.
MAY: Final = ("libs/models/popagent_models", "libs/local/popagent_local", "libs/testing/popagent_testing")
CODE: Final = ("libs", "services", "proto")
CLIENTS: Final = {"anthropic", "cohere", "google-genai", "groq", "litellm", "mistralai", "ollama", "openai"}


def test_no_vendor_is_named_outside_of_the_library_of_models() -> None:
    named = [
        f"{path}:{number}: {line.strip()}"
        for top in CODE
        for path in sorted((ROOT / top).rglob("popagent_*/**/*.py"))
        if not str(path.relative_to(ROOT)).startswith(MAY)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if VENDORS.search(MEANT.sub("", line))
    ]

    assert named == []


def test_no_client_of_a_vendor_is_installed_to_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    names = {re.split(r"[^A-Za-z0-9-]", each, maxsplit=1)[0].lower() for each in project["dependencies"]}

    assert len(names) > 5
    assert names & CLIENTS == set()
