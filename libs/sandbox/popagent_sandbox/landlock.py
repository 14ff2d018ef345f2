"""The Linux rules that confine a program to folders named beforehand, whatever it is made to open or to start."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

# Numbers that are the same on every architecture.
_CREATE: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446
_ASK_VERSION: Final = 1
_BENEATH: Final = 1
_NO_NEW_PRIVILEGES: Final = 38
_BIND_AND_CONNECT: Final = 3
# Files cannot be moved between folders since version 2, truncated since 3, TCP is governed since 4.
_RIGHTS: Final = {1: 0x1FFF, 2: 0x3FFF}
_ALL_RIGHTS: Final = 0x7FFF
_FIRST_WITH_NETWORK: Final = 4


class Right(IntFlag):
    """What may be done at a path and below it."""

    START = 1
    WRITE = 2
    READ = 4
    LIST = 8


_OF_FILES: Final = Right.START | Right.WRITE | Right.READ


@dataclass(frozen=True)
class Allowed:
    """A path, or a descriptor of one, with what is allowed there; a path that does not exist allows nothing."""

    place: str | int
    rights: Right


class LandlockMissingError(Exception):
    """This kernel, or its seccomp filter, does not offer the rules."""


class _Handled(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def version() -> int:
    """Return the version of the rules that this kernel has, 0 for none."""
    return 0 if _libc is None else max(0, int(_libc.syscall(_CREATE, None, 0, _ASK_VERSION)))


@contextmanager
def ruleset(allowed: Iterable[Allowed]) -> Iterator[int]:
    """Make the rules; everything that is not allowed is refused, TCP too where the kernel can.

    Raises:
        LandlockMissingError: The kernel has none.
    """
    known = version()
    if known == 0 or _libc is None:
        raise LandlockMissingError
    handled = _Handled(_RIGHTS.get(known, _ALL_RIGHTS), _BIND_AND_CONNECT)
    size = ctypes.sizeof(handled) if known >= _FIRST_WITH_NETWORK else ctypes.sizeof(ctypes.c_uint64)
    rules = _checked(_libc.syscall(_CREATE, ctypes.byref(handled), size, 0))
    try:
        for each in allowed:
            _add(rules, each)
        yield rules
    finally:
        os.close(rules)


def confine_this_thread(rules: int) -> None:
    """Apply the rules to the calling thread and to what it starts, for good; other threads stay as they are."""
    if _libc is None:
        raise LandlockMissingError
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _checked(_libc.syscall(_RESTRICT_SELF, rules, 0))


def _add(rules: int, allowed: Allowed) -> None:
    assert _libc is not None
    try:
        place = os.dup(allowed.place) if isinstance(allowed.place, int) else os.open(allowed.place, os.O_PATH)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
        rule = _PathBeneath(int(allowed.rights if is_folder else allowed.rights & _OF_FILES), place)
        _checked(_libc.syscall(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(place)


def _checked(answer: int) -> int:
    if answer >= 0:
        return int(answer)
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EOPNOTSUPP):
        raise LandlockMissingError
    raise OSError(code, os.strerror(code))
