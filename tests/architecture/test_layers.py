"""The import rules of pyproject.toml hold, and each of them catches a planted violation."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from popagent_kit.settings import clone_root

ROOT = clone_root()
assert ROOT is not None
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = CONFIG["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] + ["libs/testing/popagent_testing"]
CONTRACTS = CONFIG["tool"]["importlinter"]["contracts"]
LAYERS = [[name.strip() for name in layer.split("|")] for layer in CONTRACTS[0]["layers"]]


def lint_imports(folder: Path, search: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache", "--config", str(folder / "pyproject.toml")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(search)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def planted() -> list[tuple[str, str]]:
    """Return (importing package, imported module) pairs, one for every rule."""
    pairs = []
    for higher, lower in itertools.pairwise(LAYERS):
        pairs.append((lower[0], higher[0]))
        pairs += list(itertools.pairwise(higher))  # neighbours of one layer do not know each other
    for contract in CONTRACTS[1:]:
        source, forbidden = contract["source_modules"], contract["forbidden_modules"]
        pairs += [(package, forbidden[0]) for package in source]
        pairs += [(source[0], module) for module in forbidden[1:]]
    return pairs


def test_the_code_keeps_the_rules() -> None:
    assert ROOT is not None
    result = lint_imports(ROOT, ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


def test_every_planted_violation_is_named(tmp_path: Path) -> None:
    assert ROOT is not None
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / Path(package).name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for number, (importer, imported) in enumerate(planted()):
        (tmp_path / importer / f"planted_{number}.py").write_text(f"import {imported}\n")

    result = lint_imports(tmp_path, tmp_path)

    assert result.returncode == 1
    for number, (importer, imported) in enumerate(planted()):
        assert f"{importer}.planted_{number} -> {imported}" in result.stdout, f"{importer} may import {imported}"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_is_typed(package: str) -> None:
    assert ROOT is not None
    assert (ROOT / package / "py.typed").is_file()
