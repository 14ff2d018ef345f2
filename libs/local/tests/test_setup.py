"""What a newcomer meets first: locks that fit pyproject.toml and name no host, and plain words when something lacks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {canonical(name): version for name, version in PIN.findall(text)}


@pytest.mark.parametrize(("lock", "group"), [("requirements.lock", None), ("requirements-dev.lock", "dev")])
def test_a_lock_file_pins_what_pyproject_asks_for(lock: str, group: str | None) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = list(project["project"]["dependencies"]) + (project["dependency-groups"][group] if group else [])

    locked = pins((ROOT / lock).read_text())

    asked = pins("\n".join(wanted))
    assert {name: locked.get(name) for name in asked} == asked, "run `make lock`"


@pytest.mark.parametrize("lock", ["requirements-build.lock", "requirements.lock", "requirements-dev.lock"])
def test_a_lock_file_has_a_digest_for_every_pin_and_names_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text()

    entries = re.split(r"\n(?=\S)", text.strip())

    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert not re.search(r"https?://|--index|--find-links|file:", text)


def test_the_launcher_of_a_clone_without_a_venv_says_what_to_run(tmp_path: Path) -> None:
    launcher = Path(shutil.copy(ROOT / "popagent", tmp_path))

    done = subprocess.run([launcher, "status"], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"make -C {tmp_path} setup" in done.stderr


def test_make_alone_lists_every_target() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)

    targets = set(re.findall(r"make ([a-z-]+)", done.stdout))
    assert {"setup", "up", "test", "test-full", "lint", "types", "bench", "contracts", "ui", "clean"} <= targets


def test_an_old_python_is_refused_with_a_plain_sentence(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "make", "touch", "awk"):
        (programs / name).symlink_to(str(shutil.which(name)))
    old = programs / "python3"
    old.write_text('#!/bin/bash\nif [ "$1" = --version ]; then echo Python 3.8.18; else exit 1; fi\n')
    old.chmod(0o755)
    for name in ("Makefile", "requirements-build.lock"):
        shutil.copy(ROOT / name, tmp_path)

    done = subprocess.run(
        ["make", ".venv/.build"], cwd=tmp_path, env={"PATH": str(programs)}, capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "needs Python 3.11 or newer; found: Python 3.8.18" in done.stderr


@pytest.mark.parametrize("writable", [True, False])
def test_uv_keeps_its_cache_in_the_clone_where_the_home_cannot_be_written_to(tmp_path: Path, writable: bool) -> None:
    home = tmp_path if writable else tmp_path / "missing" / "home"
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}

    done = subprocess.run(
        ["make", "--eval", "show: ; @echo cache=$(UV_CACHE_DIR)", "show"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == ("cache=" if writable else f"cache={ROOT}/.venv/.uv-cache")
