"""Whether a folder is a Git checkout, and of which branch: small files are read, no Git is run, no link followed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Final

LONGEST_HEAD_BYTES: Final = 4_096
LONGEST_BRANCH: Final = 200
_BRANCH: Final = "ref: refs/heads/"
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class CheckoutState:
    """`branch` is None when the checkout stands on none, or when its storage lies elsewhere."""

    is_repository: bool = False
    branch: str | None = None


NO_CHECKOUT: Final = CheckoutState()


def checkout_of(folder: int) -> CheckoutState:
    """Return what the folder behind this descriptor is."""
    try:
        kind = os.stat(".git", dir_fd=folder, follow_symlinks=False).st_mode
        if stat.S_ISREG(kind):  # a further worktree or a submodule; its storage is not below the folder
            return CheckoutState(_text(".git", folder).startswith("gitdir: "))
        storage = os.open(".git", _FOLDER, dir_fd=folder)
    except OSError:
        return NO_CHECKOUT
    try:
        head = _text("HEAD", storage)
    except OSError:
        return NO_CHECKOUT
    finally:
        os.close(storage)
    name = head.removeprefix(_BRANCH).strip()
    named = head.startswith(_BRANCH) and name.isprintable() and 0 < len(name) <= LONGEST_BRANCH
    return CheckoutState(bool(head.strip()), name if named else None)


def _text(name: str, folder: int) -> str:
    descriptor = os.open(name, _FILE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, LONGEST_HEAD_BYTES).decode("utf-8", "replace")
    finally:
        os.close(descriptor)
