"""Device nodes for the sandboxes of root, who owns the machine's: a command could take `/dev/null` from everybody."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

# Beside the machine's own, because other places may be mounted without devices. Every process of ours uses the same.
FOLDER: Final = Path("/dev/popagent")
# As bubblewrap's own: the kernel's numbers of them never change.
NODES: Final = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
_ANYBODY: Final = 0o666


def options() -> Sequence[str]:
    """Return what puts nodes of our own over those in a new /dev; nothing where root may make none, or for others."""
    if os.geteuid() != 0:
        return ()
    try:
        FOLDER.mkdir(mode=0o755, exist_ok=True)
        for name, numbers in NODES.items():
            _make(FOLDER / name, os.makedev(*numbers))
    except OSError as error:
        log.debug("no devices of our own", extra={"reason": error.strerror or str(error)})
        return ()
    return [option for name in NODES for option in ("--dev-bind", str(FOLDER / name), f"/dev/{name}")]


def _make(path: Path, device: int) -> None:
    """Make the node, or give it back the rights that a command may have taken from it."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was faster
            os.mknod(path, stat.S_IFCHR | _ANYBODY, device)
    else:
        if not stat.S_ISCHR(status.st_mode) or status.st_rdev != device:
            raise FileExistsError(f"{path} is something else")
    path.chmod(_ANYBODY)
