"""Whoever installs asks a registry of their own: none is named in what is committed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from popagent_kit.settings import clone_root

ROOT = clone_root() or Path()
# Parts, so that this file names none either.
HOSTS = re.compile(
    rb"(?:^|[/@.\s\"'`=(])(?:"
    rb"registry\.(?:npmjs|yarnpkg|npmmirror)\.|npm\.pkg\.github|(?:test\.)?pypi\.(?:org|python)|"
    rb"files\.pythonhosted|(?:index|static)\.crates\.io|proxy\.golang\.|"
    rb"[a-z0-9.-]+/(?:artifactory|repository/(?:npm|pypi)|api/(?:npm|pypi))/)",
    re.IGNORECASE,
)
PIP_SOURCES = re.compile(r"^\s*(?:-i\b|--index-url|--extra-index-url|-f\b|--find-links)|://", re.M)


def committed() -> list[Path]:
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("there is no git that tells what is committed")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, timeout=30, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def fields(value: Any, name: str) -> list[Any]:
    """Return every value of the field `name` at any depth."""
    if isinstance(value, dict):
        here = [value[name]] if name in value else []
        return here + [found for each in value.values() for found in fields(each, name)]
    return [found for each in value for found in fields(each, name)] if isinstance(value, list) else []


def test_no_committed_text_names_a_package_registry() -> None:
    named = {
        str(path.relative_to(ROOT)): found[0] for path in committed() if (found := HOSTS.search(path.read_bytes()))
    }

    assert named == {}


def test_lock_files_say_what_is_installed_and_not_from_where() -> None:
    npm = [path for path in committed() if path.name == "package-lock.json"]
    pip = [path for path in committed() if path.suffix == ".lock"]

    assert npm
    assert pip
    for path in npm:
        lock = json.loads(path.read_bytes())
        assert fields(lock, "resolved") == [], path
        packages = {name: each for name, each in lock["packages"].items() if name and not each.get("link")}
        assert [name for name, each in packages.items() if not each.get("integrity")] == [], path
    assert [str(path) for path in pip if PIP_SOURCES.search(path.read_text(encoding="utf-8"))] == []


def test_npm_writes_lock_files_without_addresses() -> None:
    settings = [path for path in committed() if path.name == ".npmrc"]

    assert settings
    for path in settings:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert "omit-lockfile-registry-resolved=true" in lines, path
        assert [line for line in lines if "registry=" in line.replace(" ", "")] == [], path


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        (b'"resolved": "https://registry.' + b'npmjs.org/a/-/a-1.tgz"', True),
        (b"--index-url https://user@py" + b"pi.org/simple", True),
        (b"http://mirror.example/api/" + b"pypi/simple/", True),
        (b"from the npm registry, as popagent_proto.registry.messages does", False),
    ],
)
def test_a_registry_is_seen(text: bytes, is_named: bool) -> None:
    assert bool(HOSTS.search(text)) is is_named
