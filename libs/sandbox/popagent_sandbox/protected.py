"""What agents may read and never change, wherever it lies in a workspace: one table, each row with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from popagent_sandbox.denied import PathTable
from popagent_sandbox.errors import PathProtectedError
from popagent_sandbox.paths import shown

_INSTRUCTS: Final = "it tells agents how to work here"
_RUNS: Final = "another program on a person's machine runs what it says"

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
