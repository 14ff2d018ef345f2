"""Real Git repositories for tests, made with the git of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_local.ports import free_port

_ENVIRONMENT: Final = {
    "PATH": os.environ.get("PATH", ""),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
}


@dataclass(frozen=True)
class Repository:
    """A checkout on branch `main`."""

    root: Path

    @classmethod
    def made(cls, root: Path, *arguments: str) -> Repository:
        """Initialise an empty one; `arguments` are those of `git init`."""
        root.mkdir(parents=True, exist_ok=True)
        made = cls(root)
        made.git("init", "--quiet", "--initial-branch=main", *arguments)
        return made

    def copied(self, root: Path) -> Repository:
        """Return a copy, which is much cheaper than another one."""
        return Repository(Path(shutil.copytree(self.root, root, symlinks=True)))

    def git(self, *arguments: str, check: bool = True) -> str:
        """Run git in the checkout, with whatever its configuration says."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=_ENVIRONMENT, capture_output=True, timeout=30, check=False
        )
        assert done.returncode == 0 or not check, done.stderr
        return done.stdout.decode("utf-8", "replace")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, with their folders."""
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Mapping[str, str | bytes]) -> str:
        """Write files and commit everything; returns the id."""
        self.write(files)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--no-verify", "--message", message)
        return self.git("rev-parse", "HEAD").strip()


def can_be_served() -> bool:
    """Tell whether the git of this machine came with its daemon."""
    if shutil.which("git") is None:
        return False
    programs = subprocess.run(["git", "--exec-path"], capture_output=True, check=True).stdout.decode().strip()
    return (Path(programs) / "git-daemon").exists()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the repositories below a folder on loopback; gives the address to put their path behind."""
    port = free_port()
    command = ["git", "daemon", "--reuseaddr", "--export-all", f"--base-path={folder}", "--listen=127.0.0.1"]
    daemon = subprocess.Popen(
        [*command, f"--port={port}", str(folder)],
        env=_ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(port, daemon)
        yield f"git://127.0.0.1:{port}"
    finally:
        os.killpg(daemon.pid, signal.SIGTERM)
        daemon.wait(10)


def _wait_for(port: int, daemon: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        assert daemon.poll() is None, "git daemon ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError("git daemon does not listen")
