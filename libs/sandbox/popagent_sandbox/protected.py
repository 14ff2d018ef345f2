"""What agents may read and never change, wherever it lies in a workspace: one table, each row with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from popagent_sandbox.denied import PathTable
from popagent_sandbox.errors import PathProtectedError
from popagent_sandbox.paths import shown

_INSTRUCTS: Final = "it tells agents how to work here"
_RUNS: Final = "another program on a person's machine runs what it says"
_PACKAGE: Final = "it is package metadata and decides what is installed and run"

# Patterns as in `denied.py`. What is hidden from agents is protected, too, and not repeated here.
PROTECTED: Final[tuple[tuple[str, str], ...]] = (
    ("agents*.md", _INSTRUCTS),
    (".agents", _INSTRUCTS),
    ("claude.md", _INSTRUCTS),
    ("claude.local.md", _INSTRUCTS),
    (".claude", _INSTRUCTS),
    ("gemini.md", _INSTRUCTS),
    (".gemini", _INSTRUCTS),
    (".codex", _INSTRUCTS),
    (".cursor", _INSTRUCTS),
    (".cursorrules", _INSTRUCTS),
    (".windsurfrules", _INSTRUCTS),
    (".github/copilot-instructions.md", _INSTRUCTS),
    (".mcp.json", _RUNS),
    (".vscode", _RUNS),
    (".devcontainer", _RUNS),
    (".husky", _RUNS),
    (".githooks", _RUNS),
    (".gitmodules", _RUNS),
    (".pnpmfile.cjs", _RUNS),
    ("package.json", _PACKAGE),
    ("package-lock.json", _PACKAGE),
    ("npm-shrinkwrap.json", _PACKAGE),
    ("yarn.lock", _PACKAGE),
    ("pnpm-lock.yaml", _PACKAGE),
    ("pnpm-workspace.yaml", _PACKAGE),
    ("bun.lock", _PACKAGE),
    ("bun.lockb", _PACKAGE),
    ("deno.lock", _PACKAGE),
    ("pyproject.toml", _PACKAGE),
    ("setup.py", _PACKAGE),
    ("setup.cfg", _PACKAGE),
    ("requirements*.txt", _PACKAGE),
    ("requirements*.in", _PACKAGE),
    ("requirements*.lock", _PACKAGE),
    ("uv.lock", _PACKAGE),
    ("poetry.lock", _PACKAGE),
    ("pdm.lock", _PACKAGE),
    ("pipfile", _PACKAGE),
    ("pipfile.lock", _PACKAGE),
    ("cargo.toml", _PACKAGE),
    ("cargo.lock", _PACKAGE),
    ("go.mod", _PACKAGE),
    ("go.sum", _PACKAGE),
    ("go.work", _PACKAGE),
    ("gemfile", _PACKAGE),
    ("gemfile.lock", _PACKAGE),
    ("*.gemspec", _PACKAGE),
    ("composer.json", _PACKAGE),
    ("composer.lock", _PACKAGE),
    ("pom.xml", _PACKAGE),
    ("build.gradle", _PACKAGE),
    ("build.gradle.kts", _PACKAGE),
    ("settings.gradle", _PACKAGE),
    ("settings.gradle.kts", _PACKAGE),
    ("mix.exs", _PACKAGE),
    ("mix.lock", _PACKAGE),
    ("pubspec.yaml", _PACKAGE),
    ("pubspec.lock", _PACKAGE),
    ("package.swift", _PACKAGE),
    ("package.resolved", _PACKAGE),
    ("packages.lock.json", _PACKAGE),
)
_TABLE: Final = PathTable(PROTECTED)


def why_protected(parts: Sequence[str]) -> str | None:
    """Return why agents may not change the path below the workspace, None when they may."""
    return _TABLE.why(parts)


def refuse_protected(parts: Sequence[str]) -> None:
    """Raise PathProtectedError for a path that agents may only read."""
    reason = why_protected(parts)
    if reason is not None:
        raise PathProtectedError(
            f"{shown('/'.join(parts))} is protected: {reason}. You may read it. "
            "Do not try to change it in another way; tell the person what should be changed there."
        )
