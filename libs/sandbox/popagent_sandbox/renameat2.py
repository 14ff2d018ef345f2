"""The Linux call that renames and never replaces; where it is missing, the check stands right before the rename."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import Final

_NO_REPLACE: Final = 1
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_call: Final = getattr(_libc, "renameat2", None)


def rename_new(from_fd: int, source: str, to_fd: int, target: str) -> None:
    """Rename `source` in one open folder to `target` in another.

    Raises:
        FileExistsError: There is something at the target, a dangling link too.
        OSError: As rename(2) has it.
    """
    if _call is not None:
        if _call(from_fd, os.fsencode(source), to_fd, os.fsencode(target), _NO_REPLACE) == 0:
            return
        code = ctypes.get_errno()
        # EINVAL is also the answer to a folder that is to move into itself; the plain call says so again.
        if code not in (errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code), target)
    try:
        os.stat(target, dir_fd=to_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=from_fd, dst_dir_fd=to_fd)
        return
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
