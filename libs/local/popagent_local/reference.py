"""`python -m popagent_local.reference`: writes docs/configuration.md and .env.example from the settings classes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen
from pydantic.fields import FieldInfo

from popagent_kit.settings import STARTED_BY_UP, Settings, clone_root
from popagent_local.config import GROUPS, settings_of

# Decided by `up` for the programs that it starts; an operator has nothing to say here.
SET_BY_UP: Final = frozenset({STARTED_BY_UP, "POPAGENT_LOCAL_MODEL_URL", "POPAGENT_LOCAL_MODEL_KEY"})

REFERENCE_HEAD: Final = """# Configuration

Written from the settings classes by `make contracts`; do not edit it by hand. `popagent config` prints the same list
with the values in force and where each comes from.

The strongest source wins: flag, then environment, then `./.env` of a clone, then `<home>/.env`, then the default. An
empty value counts as not set. Secrets are never printed.

`<SERVICE>` stands for GATEWAY, CHAT, TASK_RUNNER, SCHEDULER, EVOLUTION_WORKER, DOCS_INDEXER or OBSERVABILITY.
"""
EXAMPLE_HEAD: Final = """# What an operator may set; docs/configuration.md says more. Written by `make contracts`.
# Copy it to `.env` (Git ignores that file) and uncomment what you change: `make up` needs none of it.
"""
COMPOSE_EXAMPLE: Final = """# --- Docker Compose alone ---
# Password of the administrator of both PostgreSQL containers; letters and digits only, since it stands in a URL.
# POSTGRES_PASSWORD=
"""


def rows_of(settings: type[Settings]) -> list[tuple[str, FieldInfo, bool]]:
    """Return (variable, field, is secret) of what the class itself declares, `SET_BY_UP` excluded."""
    own = settings.__annotations__
    return [
        (env, settings.model_fields[name], secret)
        for name, env, secret in settings.declared()
        if name in own and env not in SET_BY_UP
    ]


def groups() -> dict[str, list[tuple[str, FieldInfo, bool]]]:
    """Return every group's rows; a variable that two parts read stands where it comes first."""
    seen: set[str] = set()
    found: dict[str, list[tuple[str, FieldInfo, bool]]] = {}
    for title, modules in GROUPS.items():
        rows = [row for module in modules for settings in settings_of(module) for row in rows_of(settings)]
        found[title] = [row for row in rows if row[0] not in seen]
        seen |= {env for env, _, _ in found[title]}
    return {title: rows for title, rows in found.items() if rows}


def default_of(field: FieldInfo) -> str:
    """Return the default as one would write it, or nothing."""
    return "" if field.is_required() or field.default is None else str(field.default)


def bounds_of(field: FieldInfo) -> str:
    """Return what values are accepted, in words, or nothing."""
    choices = [part for part in (field.annotation, *get_args(field.annotation)) if get_origin(part) is Literal]
    if choices:
        return ", ".join(map(str, get_args(choices[0])))
    words = []
    for bound in field.metadata:
        match bound:
            case Ge(ge=limit):
                words.append(f"at least {limit}")
            case Gt(gt=limit):
                words.append(f"more than {limit}")
            case Le(le=limit):
                words.append(f"at most {limit}")
            case Lt(lt=limit):
                words.append(f"less than {limit}")
            case MaxLen(max_length=limit):
                words.append(f"at most {limit} characters")
    return ", ".join(words)


def document() -> str:
    """Return docs/configuration.md."""
    parts = [REFERENCE_HEAD]
    for title, rows in groups().items():
        parts.append(f"\n## {title}\n\n| variable | default | meaning |\n|---|---|---|\n")
        for env, field, secret in rows:
            default = f"`{default_of(field)}`" if default_of(field) else ""
            bounds = f" Accepted: {bounds_of(field)}." if bounds_of(field) else ""
            meaning = f"{field.description or ''}{' Secret.' if secret else ''}{bounds}".replace("|", "&#124;")
            parts.append(f"| `{env}` | {default} | {meaning} |\n")
    return "".join(parts)


def example() -> str:
    """Return .env.example: every variable, commented out, with its default."""
    parts = [EXAMPLE_HEAD]
    for title, rows in groups().items():
        parts.append(f"\n# --- {title} ---\n")
        for env, field, _ in rows:
            if "<" not in env:
                parts.append(f"\n# {field.description}\n# {env}={default_of(field)}\n")
    return "".join(parts).replace("---\n\n#", "---\n#") + "\n" + COMPOSE_EXAMPLE


def files(root: Path) -> dict[Path, str]:
    """Return both files with their content."""
    return {root / "docs" / "configuration.md": document(), root / ".env.example": example()}


def main(arguments: list[str]) -> int:
    """Write both; with `--check` write nothing and return 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m popagent_local.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where a file differs")
    check = parser.parse_args(arguments).check
    root = clone_root()
    if root is None:
        sys.stderr.write("The reference is written in a clone.\n")
        return 2
    stale = [(path, text) for path, text in files(root).items() if not path.exists() or path.read_text("utf-8") != text]
    for path, text in stale:
        if not check:
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{'differs' if check else 'written'}: {path.relative_to(root)}\n")
    if check and stale:
        sys.stdout.write("Run `make contracts` and commit what it writes.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
