"""The wheel has everything in it and runs without the clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from popagent_kit.settings import clone_root
from popagent_local.ports import free_port
from popagent_testing.model_process import ModelProcess

ROOT = clone_root() or Path()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BIN = Path(sys.executable).parent
BUILT = ROOT / "services/gateway/popagent_gateway/static/index.html"
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [
        BIN / "uv",
        "build",
        "--quiet",
        "--offline",
        "--no-build-isolation",
        "--wheel",
        "--out-dir",
        folder,
        ROOT,
    ]
    subprocess.run(command, check=True, timeout=100, env={**os.environ, "VIRTUAL_ENV": str(BIN.parent)})
    return next(folder.glob("*.whl"))


class Installed:
    """The wheel in a venv of its own, with an empty home; third-party packages are borrowed from this one's."""

    def __init__(self, folder: Path, wheel: Path, model_url: str) -> None:
        self.folder = folder / "empty"
        self.folder.mkdir()
        self.bin = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        install = [BIN / "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", self.bin / "python"]
        subprocess.run([*install, wheel], check=True)
        site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        # A path alone: the .pth file there that leads to the clone is not read a second time.
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.env = {
            "HOME": str(folder / "home"),
            "PATH": os.pathsep.join([str(self.bin), str(BIN), os.environ["PATH"]]),
            "POPAGENT_MODEL_URL": model_url,
            "POPAGENT_PORT": str(free_port()),
        }

    def run(self, *arguments: str | Path) -> str:
        done = subprocess.run(
            arguments, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=110, check=False
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture
def installed(wheel: Path, tmp_path: Path) -> Iterator[Installed]:
    with ModelProcess() as model:
        one = Installed(tmp_path, wheel, model.url)
        yield one
        subprocess.run([one.bin / "popagent", "down"], cwd=one.folder, env=one.env, check=False, timeout=100)


def test_the_wheel_carries_migrations_pages_readme_and_licence_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    migrations = {f"popagent_db/_{path.relative_to(ROOT)}" for path in (ROOT / "migrations").rglob("*.sql")}
    if not BUILT.exists():
        pytest.skip("the page was not built: `make ui` builds it")
    built = [path for path in BUILT.parent.rglob("*") if path.is_file() and ".vite" not in path.parts]
    pages = {f"popagent_gateway/static/{path.relative_to(BUILT.parent)}" for path in built}
    info = f"popagent-{PROJECT['version']}.dist-info"
    texts = {"popagent_local/_share/README.md", f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"}

    assert migrations | pages | texts <= names
    assert {"popagent_gateway/static/index.html", "popagent_gateway/static/licences.md"} <= pages
    assert not [name for name in names if name.endswith((".tsx", "manifest.json")) or "node_modules" in name]
    assert not [name for name in names if "/tests/" in name or name.startswith(("popagent_testing", "tests/"))]


def test_the_version_is_written_in_one_place() -> None:
    version = PROJECT["version"]
    sources = [path for top in ("libs", "services", "proto") for path in (ROOT / top).rglob("*.py")]

    elsewhere = [path for path in sources if f'"{version}"' in path.read_text(encoding="utf-8")]

    assert elsewhere == []


def get(installed: Installed, path: str) -> str:
    with DIRECT.open(f"http://127.0.0.1:{installed.env['POPAGENT_PORT']}{path}", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.full
def test_the_installed_wheel_runs_from_an_empty_folder(installed: Installed) -> None:
    where = installed.run(installed.bin / "python", "-c", "import popagent_kit; print(popagent_kit.__file__)")
    assert str(ROOT) not in where

    installed.run("popagent", "up", "--detach")
    health = installed.run("popagent", "health")
    answer = installed.run("popagent", "chat", "Hello?")
    page = get(installed, "/chat/any")
    parts = [get(installed, path) for path in re.findall(r'(?:href|src)="([^"]+)"', page)]
    installed.run("popagent", "down")

    assert "chat" in health
    assert answer.strip()
    assert "/assets/" in page
    assert all(parts)
    assert (Path(installed.env["HOME"]) / ".local" / "share" / "popagent" / "credentials").is_dir()
    assert list(installed.folder.iterdir()) == []
