"""The Linux call that opens a path below a folder and refuses to leave it, whatever others do to the tree meanwhile."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from typing import Final

# The number is the same on every architecture that Linux added since 2011 and on x86.
_OPENAT2: Final = 437
_NO_MAGICLINKS: Final = 0x02
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_TRIES: Final = 8


class Openat2MissingError(Exception):
    """This kernel, or its seccomp filter, does not offer the call."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_missing: bool = _libc is None


def open_beneath(folder: int, path: str, flags: int) -> int:
    """Return a descriptor of `path` below the descriptor `folder`; a link anywhere in it is ELOOP.

    Raises:
        Openat2MissingError: The caller has to walk by itself.
        OSError: As open(2) has it; EXDEV when the path would leave the folder.
    """
    global _missing  # noqa: PLW0603 (a kernel does not learn the call while we run)
    if _missing or _libc is None:
        raise Openat2MissingError
    how = _How(flags | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGICLINKS | _NO_SYMLINKS)
    code = 0
    for _ in range(_TRIES):
        opened = int(_libc.syscall(_OPENAT2, folder, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how)))
        if opened >= 0:
            return opened
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EPERM):
            _missing = code == errno.ENOSYS
            raise Openat2MissingError
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code), path)
