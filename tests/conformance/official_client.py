"""The official JavaScript client as a judge: `validate.mjs` run by Node, its packages installed once per lock file.

`run_live(base_url, key)` holds a running gateway to it. Every function takes the major version of the client.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

HERE: Final = Path(__file__).parent
CACHE: Final = HERE.parents[1] / ".popagent" / "node"
INSTALL_TIMEOUT_S: Final = 100
# The locked versions of the client, and the Node that each needs.
FOLDERS: Final = {6: HERE, 7: HERE / "v7"}
NODES: Final = {6: 20, 7: 22}
# npm's words for "the registry cannot be reached": no fault of ours.
_OFFLINE: Final = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")


class OfficialClientError(AssertionError):
    """The official client refused something; the text is what Node wrote."""


# The machine's own Node comes first, then the one of the development packages.
PATH: Final = os.pathsep.join(filter(None, (os.environ.get("PATH"), str(Path(sys.executable).parent))))


def program(name: str, least: int = 0) -> str:
    """Return where `node` or `npm` is, of major version `least` or newer.

    Without one the test is skipped, or fails where CI is true.
    """
    places = (shutil.which(name, path=folder) for folder in PATH.split(os.pathsep))
    found = next((place for place in places if place and (not least or _major(place) >= least)), None)
    if found is None:
        reason = f"{name}{f' {least}' if least else ''} is not installed: the official client is not asked"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def _major(node: str) -> int:
    written = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    return int(written.removeprefix("v").partition(".")[0])


def _installed(version: int) -> Path:
    """Return a folder with `node_modules` as the lock file wants them; skips when the registry is out of reach."""
    sources = [FOLDERS[version] / "package.json", FOLDERS[version] / "package-lock.json", HERE / ".npmrc"]
    folder = CACHE / hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test workers share the folder
        if not folder.exists():
            _install(sources, folder)
    return folder


def _install(sources: list[Path], folder: Path) -> None:
    npm = program("npm")
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        target = Path(scratch) / "install"
        target.mkdir()
        for source in sources:
            shutil.copy(source, target)
        done = subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=target,
            env=os.environ | {"PATH": PATH, "npm_config_cache": str(CACHE / "npm")},
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            if any(word in done.stderr for word in _OFFLINE):
                pytest.skip(f"npm cannot reach its registry: {done.stderr.strip().splitlines()[-1]}")
            raise RuntimeError(f"npm ci failed: {done.stderr}")
        target.rename(folder)


def _validate(*arguments: str, timeout_s: float, version: int) -> Any:
    node = program("node", NODES[version])
    folder = _installed(version)
    source = (HERE / "validate.mjs").read_bytes()
    # Modules are looked up beside the script, so it lies beside them; its hash keeps versions apart.
    script = folder / f"validate-{hashlib.sha256(source).hexdigest()[:16]}.mjs"
    if not script.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            file.write(source)
        Path(file.name).rename(script)
    done = subprocess.run(
        [node, str(script), *arguments],
        capture_output=True,
        timeout=timeout_s,
        check=False,
        env=os.environ | {"NO_PROXY": "127.0.0.1,localhost"},
    )
    if done.returncode != 0:
        raise OfficialClientError(done.stderr.decode(errors="replace"))
    return orjson.loads(done.stdout)


def validate_streams(*paths: Path, message: Path | None = None, version: int = 6) -> dict[str, int]:
    """Hold recorded streams to schema, reducer and message validation; returns chunks counted by path."""
    continued = [] if message is None else ["--message", str(message)]
    counts: dict[str, int] = _validate("file", *map(str, paths), *continued, timeout_s=60, version=version)
    return counts


def reduce_streams(cases: list[dict[str, Any]], scratch: Path, version: int = 6) -> list[dict[str, Any]]:
    """Reduce each `{stream, message?}` with the official reducer, in one process: `{message, valid}` or `{error}`."""
    path = scratch / "cases.json"
    path.write_bytes(orjson.dumps(cases))
    reduced: list[dict[str, Any]] = _validate("reduce", str(path), timeout_s=60, version=version)
    return reduced


def parse_partial_texts(texts: list[str], scratch: Path, version: int = 6) -> list[dict[str, Any]]:
    """Parse growing JSON as the official client does: `{value}`, or `{}` where it has none."""
    path = scratch / "texts.json"
    path.write_bytes(orjson.dumps(texts))
    parsed: list[dict[str, Any]] = _validate("partial", str(path), timeout_s=60, version=version)
    return parsed


def run_live(
    base_url: str,
    key: str | None = None,
    *,
    prompts: dict[str, str] | None = None,
    timeout_s: float = 300,
    version: int = 6,
) -> dict[str, list[str]]:
    """Drive a running gateway through all three levels; returns `{checks, leftOut}`.

    Blocks, so call it by `asyncio.to_thread` where the gateway shares the loop.

    Args:
        base_url: Without `/api/chat`.
        key: The gateway's key, if it wants one.
        prompts: `normal` (a short answer), `slow` (an answer of some seconds), `failing` (a turn that ends with an
            error chunk; without it that check is left out).
        timeout_s: For all checks together.
        version: Which major version of the client.

    Raises:
        OfficialClientError: A check failed; the text names it.
    """
    options = [] if prompts is None else ["--prompts", orjson.dumps(prompts).decode()]
    report: dict[str, list[str]] = _validate(
        "live", base_url, *([key] if key else []), *options, timeout_s=timeout_s, version=version
    )
    return report
