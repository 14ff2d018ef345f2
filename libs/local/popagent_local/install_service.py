"""`popagent install-service`: a systemd unit for those who leave popagent alone for weeks."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from popagent_kit.errors import ConfigurationError, ConflictError
from popagent_kit.settings import clone_root
from popagent_local.programs import LONGEST_STOP_S

NAME: Final = "popagent.service"
# What systemd takes in no path of a program, however it is written.
REFUSED: Final = "\"'\\"


@dataclass(frozen=True)
class Unit:
    """A unit file: its place, its text, and the commands that follow."""

    path: Path
    text: str
    commands: tuple[str, ...]


def unit(home: Path, *, system: bool) -> Unit:
    """Return the unit that runs this installation on `home`; `system` for the whole machine, else for this user.

    Raises:
        ConfigurationError: Systemd cannot start programs of this folder.
    """
    program = Path(sys.executable).with_name("popagent")
    words = [str(program), "up"] if program.exists() else [sys.executable, "-m", "popagent_local", "up"]
    if set(words[0]) & set(REFUSED):
        raise ConfigurationError(f"systemd starts no program with a quote or a backslash in its path: {words[0]}")
    command = " ".join(_quoted(word) for word in [*words, "--quiet"])
    folder = clone_root() or home
    path = os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    text = f"""[Unit]
Description=popagent, a self-hosted company of agents
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
WorkingDirectory={str(folder).replace("%", "%%")}
Environment={_quoted(f"POPAGENT_HOME={home}")}
Environment={_quoted(f"PATH={path}")}
ExecStart={command}
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


def _quoted(word: str) -> str:
    """Systemd splits at blanks, and reads percent signs as specifiers and backslashes as escapes."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
