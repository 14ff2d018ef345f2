"""PgQueuer and Procrastinate beside us, over the same PostgreSQL in the same minute; they are no part of popagent.

Each lives in an environment of its own below the benchmark's folder, where what is in `peers/` drives it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from figures import Figures

PEERS = {
    "PgQueuer": ("pgqueuer==1.6.0", "asyncpg"),
    "Procrastinate": ("procrastinate==3.10.0", "psycopg[binary,pool]"),
}
FOLDER = Path(__file__).parent / "peers"
INSTALL_TIMEOUT_S = 300
TIMEOUT_S = 300


def measure_peers(dsn: Callable[[str], str], figures: Figures) -> None:
    """Add the peers' figures, which have no bar; `dsn` names a database of an administrator, each peer makes its own.

    A peer that cannot be installed or fails is left out, and a line says so.
    """
    for name, packages in PEERS.items():
        try:
            python = environment(figures.folder / f"peer-{name.lower()}", packages)
            found = driven(python, name.lower(), dsn)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        for figure, (value, unit) in found.items():
            figures.add(f"{name}: {figure}", value, unit, None, "lower" if unit == "ms" else "higher")


def environment(folder: Path, packages: tuple[str, ...]) -> str:
    """Return the Python of an environment with the packages; made once and kept."""
    python, made = folder / "bin" / "python", folder / "made"
    wanted = "\n".join(packages)
    if not (made.is_file() and made.read_text() == wanted):
        uv = str(Path(sys.executable).with_name("uv"))
        venv = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
        install = [uv, "pip", "install", "--quiet", "--system-certs", "--python", str(python), *packages]
        for command in (venv, install):
            subprocess.run(command, check=True, timeout=INSTALL_TIMEOUT_S)
        made.write_text(wanted)
    return str(python)


def driven(python: str, name: str, dsn: Callable[[str], str]) -> dict[str, tuple[float, str]]:
    """Return what the peer's own process measured."""
    # Without this process's packages.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command = [python, str(FOLDER / f"{name}_jobs.py"), dsn("postgres"), dsn(f"peer_{name}")]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=TIMEOUT_S, check=True, env=env)
    found: dict[str, tuple[float, str]] = json.loads(done.stdout)
    return found
