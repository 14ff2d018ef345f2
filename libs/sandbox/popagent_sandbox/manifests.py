"""What kind of project a folder holds, and how its tests are run, as far as its manifests say so."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from popagent_kit import json
from popagent_kit.errors import AppError, MalformedJsonError
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.reading import read_bytes

LARGEST_MANIFEST_BYTES: Final = 512 * 1024


@dataclass(frozen=True)
class Project:
    """`tests` is the command that runs them, None when the manifest does not say; no text of the project is in here."""

    kind: str
    manifest: str
    tests: str | None = None


class _Top:
    """The files at the top of a folder."""

    def __init__(self, folder: ContainedFolder) -> None:
        self._folder = folder

    def has(self, name: str) -> bool:
        """Tell whether there is such a file, whatever its size: a lock may have megabytes."""
        try:
            with self._folder.open(name) as opened:
                return not opened.is_folder
        except AppError:
            return False

    def text(self, name: str) -> str | None:
        """Return a file's text, None when there is none that can be read."""
        try:
            with self._folder.open(name) as opened:
                return read_bytes(opened, LARGEST_MANIFEST_BYTES).decode("utf-8", "replace")
        except AppError:
            return None


def projects_in(folder: ContainedFolder) -> tuple[Project, ...]:
    """Return what the manifests at the top of the folder say; one that cannot be read as such still tells its kind."""
    top = _Top(folder)
    found = []
    for manifest, read in READERS.items():
        text = top.text(manifest)
        if text is not None:
            project = read(text, top)
            if project is not None:
                found.append(project)
    return tuple(found)


def _python(text: str, top: _Top) -> Project:
    try:
        table: Mapping[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return Project("Python", "pyproject.toml")
    tool = table.get("tool")
    configured = isinstance(tool, dict) and "pytest" in tool
    uses_pytest = configured or re.search(r"[\"'\[]\s*pytest\b", text) is not None
    runner = "uv run " if top.has("uv.lock") else "poetry run " if top.has("poetry.lock") else ""
    tests = f"{runner}pytest" if uses_pytest else "tox" if top.has("tox.ini") else None
    return Project("Python", "pyproject.toml", tests)


def _node(text: str, top: _Top) -> Project:
    kind = "TypeScript" if top.has("tsconfig.json") else "JavaScript"
    try:
        table = json.loads(text)
    except MalformedJsonError:
        return Project(kind, "package.json")
    scripts = table.get("scripts") if isinstance(table, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    # What `npm init` writes where nobody has written a test.
    if not isinstance(script, str) or not script.strip() or "no test specified" in script:
        return Project(kind, "package.json")
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun run", "bun.lockb": "bun run"}
    program = next((name for lock, name in locks.items() if top.has(lock)), "npm")
    return Project(kind, "package.json", f"{program} test")


def _gradle(manifest: str) -> Callable[[str, _Top], Project]:
    def read(_: str, top: _Top) -> Project:
        return Project("Java or Kotlin", manifest, f"{'./gradlew' if top.has('gradlew') else 'gradle'} test")

    return read


def _php(text: str, _: _Top) -> Project:
    return Project("PHP", "composer.json", "composer test" if re.search(r'"test"\s*:', text) else None)


def _ruby(text: str, _: _Top) -> Project:
    return Project("Ruby", "Gemfile", "bundle exec rspec" if "rspec" in text else None)


def _make(text: str, _: _Top) -> Project | None:
    """A Makefile tells a project's kind no more than that it has one, so it only counts with a target for tests."""
    target = re.search(r"^(test|check)\s*:(?!=)", text, re.M)
    return None if target is None else Project("make", "Makefile", f"make {target[1]}")


def _always(kind: str, manifest: str, tests: str | None) -> Callable[[str, _Top], Project]:
    return lambda _text, _top: Project(kind, manifest, tests)


READERS: Final[dict[str, Callable[[str, _Top], Project | None]]] = {
    "pyproject.toml": _python,
    "package.json": _node,
    "Cargo.toml": _always("Rust", "Cargo.toml", "cargo test"),
    "go.mod": _always("Go", "go.mod", "go test ./..."),
    "pom.xml": _always("Java", "pom.xml", "mvn test"),
    "build.gradle": _gradle("build.gradle"),
    "build.gradle.kts": _gradle("build.gradle.kts"),
    "composer.json": _php,
    "Gemfile": _ruby,
    "mix.exs": _always("Elixir", "mix.exs", "mix test"),
    "CMakeLists.txt": _always("C or C++", "CMakeLists.txt", None),
    "Makefile": _make,
}
