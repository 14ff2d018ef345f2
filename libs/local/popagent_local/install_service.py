"""`popagent install-service`: a systemd unit for those who leave popagent alone for weeks."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConflictError
from popagent_kit.settings import clone_root
from popagent_local.programs import LONGEST_STOP_S

NAME: Final = "popagent.service"


@dataclass(frozen=True)
class Unit:
    """A unit file: its place, its text, and the commands that follow."""

    path: Path
    text: str
    commands: tuple[str, ...]


def unit(home: Path, *, system: bool) -> Unit:
    """Return the unit that runs this installation on `home`; `system` for the whole machine, else for this user."""
    program = Path(sys.executable).with_name("popagent")
    command = f"{program} up" if program.exists() else f"{sys.executable} -m popagent_local up"
    folder = clone_root() or home
    text = f"""[Unit]
Description=popagent, a self-hosted company of agents
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
WorkingDirectory={_escaped(folder)}
Environment=POPAGENT_HOME={_escaped(home)}
Environment=PATH={os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")}
ExecStart={command} --quiet
# The supervisor stops its programs in order; only what it leaves is killed.
KillMode=mixed
TimeoutStopSec={LONGEST_STOP_S + 5:.0f}
Restart=on-failure
RestartSec=5

[Install]
WantedBy={"multi-user.target" if system else "default.target"}
"""
    if system:
        return Unit(
            Path("/etc/systemd/system") / NAME,
            text,
            ("systemctl daemon-reload", "systemctl enable --now popagent", "journalctl -u popagent -f"),
        )
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return Unit(
        config / "systemd" / "user" / NAME,
        text,
        (
            "systemctl --user daemon-reload",
            "systemctl --user enable --now popagent",
            "loginctl enable-linger      # keeps it running when you log out",
            "journalctl --user -u popagent -f",
        ),
    )


def install(wanted: Unit) -> Path | None:
    """Write the unit; return the backup of a different one that was there, or None.

    Raises:
        ConflictError: The place cannot be written.
    """
    backup = None
    try:
        wanted.path.parent.mkdir(parents=True, exist_ok=True)
        if wanted.path.exists() and wanted.path.read_text(encoding="utf-8") != wanted.text:
            backup = wanted.path.with_suffix(".service.bak")
            shutil.copy2(wanted.path, backup)
        wanted.path.write_text(wanted.text, encoding="utf-8")
    except PermissionError as error:
        raise ConflictError(
            f"{wanted.path} cannot be written ({error.strerror}). Use --user, or --print and place it."
        ) from error
    return backup


def _escaped(path: Path) -> str:
    """Systemd reads percent signs as specifiers and blanks as separators."""
    return str(path).replace("%", "%%").replace(" ", "\\x20")
