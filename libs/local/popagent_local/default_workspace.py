"""The default workspace's folder: made once, so that the first question has something to read."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Final

from popagent_kit.settings import clone_root

FOLDER: Final = "default"
CLONE_TIMEOUT_S: Final = 120


def make(root: Path) -> str | None:
    """Make `root/default` unless it is there; returns what it was made from, in words, or None.

    In a clone it is a local clone of it; installed from a package, a folder with the README.
    """
    target = root / FOLDER
    if target.exists():
        return None
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=root) as making:
        made = Path(making) / FOLDER
        clone = clone_root()
        source = "a clone of this repository" if clone is not None and _cloned(clone, made) else "popagent's README"
        if not made.exists():
            made.mkdir()
            (made / "README.md").write_text(_readme(clone), encoding="utf-8")
        # At the end, in one move: a half-made workspace is never seen.
        made.rename(target)
    return source


def _cloned(clone: Path, target: Path) -> bool:
    git = shutil.which("git")
    if git is None or not (clone / ".git").exists():
        return False
    done = subprocess.run(
        [git, "clone", "--quiet", "--no-hardlinks", str(clone), str(target)],
        capture_output=True,
        timeout=CLONE_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        shutil.rmtree(target, ignore_errors=True)
    return done.returncode == 0


def _readme(clone: Path | None) -> str:
    if clone is not None:
        return (clone / "README.md").read_text(encoding="utf-8")
    return (files("popagent_local") / "_share" / "README.md").read_text(encoding="utf-8")
