"""The system calls that a confined command may not make, as a filter program for the kernel.

Assembled here, in a few lines of classic BPF: a library would bring libseccomp, which not every machine has, to look up
numbers that the kernel has promised never to change.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

_LOAD: Final = 0x20
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_IF_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000
# Offsets in what the kernel shows to a filter.
_NUMBER: Final = 0
_ARCHITECTURE: Final = 4
_FIRST_ARGUMENT: Final = 16

# Of every architecture since 2011; older ones differ. Calls from here on are newer than this table.
_FIRST_UNKNOWN: Final = 463

Numbers: TypeAlias = tuple[int | None, int | None]
"""Of a call on x86_64 and on aarch64, None where there is no such call."""

_REFUSED: Final[dict[str, Numbers]] = {
    # Other namespaces and mounts: the way to the parts of the kernel that only an administrator can reach.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # Keys of the kernel belong to the account, not to a namespace.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # Looking into other programs.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    # Large and rarely needed parts of the kernel.
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
# Programs try an older call when these do not exist; their arguments cannot be looked at.
_ABSENT: Final[dict[str, Numbers]] = {
    "clone3": (435, 435),
    "openat2": (437, 437),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
# Programs write instead: a disk is then filled at a speed that can be watched, not at once.
_NOT_SUPPORTED: Final[dict[str, Numbers]] = {"fallocate": (285, 47)}
_NEW_NAMESPACE: Final = 0x7E020000
_SET_OWNER_BITS: Final = 0o6000
_CREATES: Final = 0o100 | 0o20000000
_TYPING_INTO_TERMINALS: Final = (0x5412, 0x541C, 0x5423)
# The others do not stop at a network namespace (vsock), or are there for rare hardware and protocols.
_FAMILIES: Final = (1, 2, 10, 16)


@dataclass(frozen=True)
class _Architecture:
    audit: int
    column: int


_ARCHITECTURES: Final = {"x86_64": _Architecture(0xC000003E, 0), "aarch64": _Architecture(0xC00000B7, 1)}


class UnknownArchitectureError(Exception):
    """There is no table of system calls for this kind of processor."""


@functools.cache
def filter_program(machine: str | None = None) -> bytes:
    """Return the program for this processor, or the named one, as `bwrap --seccomp` reads it.

    Raises:
        UnknownArchitectureError: We know no numbers for it.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise UnknownArchitectureError(machine)
    return b"".join(struct.pack("=HBBI", *step) for step in _program(_ARCHITECTURES[machine]))


_Step: TypeAlias = tuple[int, int, int, int]


def _program(here: _Architecture) -> Iterator[_Step]:
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _IF_EQUAL, 1, 0, here.audit
    yield _refuse(errno.ENOSYS)
    yield _LOAD, 0, 0, _NUMBER
    # Numbers of x32 lie above as well.
    yield _IF_AT_LEAST, 0, 1, _FIRST_UNKNOWN
    yield _refuse(errno.ENOSYS)
    for table, error in (
        (_REFUSED, errno.EPERM),
        (_ABSENT, errno.ENOSYS),
        (_NOT_SUPPORTED, errno.EOPNOTSUPP),
    ):
        for numbers in table.values():
            if (number := numbers[here.column]) is not None:
                yield _IF_EQUAL, 0, 1, number
                yield _refuse(error)
    yield from _by_arguments(here)
    yield _RETURN, 0, 0, _ALLOW


def _by_arguments(here: _Architecture) -> Iterator[_Step]:
    """Refuse new namespaces, files that run as their owner, typing into terminals, unusual sockets."""

    def at(numbers: Numbers, steps: list[_Step]) -> Iterator[_Step]:
        number = numbers[here.column]
        if number is not None:
            yield _IF_EQUAL, 0, len(steps) + 1, number
            yield from steps
            yield _RETURN, 0, 0, _ALLOW

    yield from at((56, 220), [_argument(0), (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACE), _refuse(errno.EPERM)])
    changes: tuple[tuple[Numbers, int], ...] = (
        ((90, None), 1),  # chmod
        ((91, 52), 1),  # fchmod
        ((268, 53), 2),  # fchmodat
        ((452, 452), 2),  # fchmodat2
        ((85, None), 1),  # creat
        ((133, None), 1),  # mknod
        ((259, 33), 2),  # mknodat
    )
    for numbers, mode in changes:
        yield from at(numbers, [_argument(mode), (_IF_ANY_BIT, 0, 1, _SET_OWNER_BITS), _refuse(errno.EPERM)])
    opens: tuple[tuple[Numbers, int], ...] = (((2, None), 1), ((257, 56), 2))
    for numbers, flags in opens:  # the mode counts if a file is made
        yield from at(
            numbers,
            [
                _argument(flags),
                (_IF_ANY_BIT, 0, 3, _CREATES),
                _argument(flags + 1),
                (_IF_ANY_BIT, 0, 1, _SET_OWNER_BITS),
                _refuse(errno.EPERM),
            ],
        )
    typing = [step for code in _TYPING_INTO_TERMINALS for step in ((_IF_EQUAL, 0, 1, code), _refuse(errno.EPERM))]
    yield from at((16, 29), [_argument(1), *typing])
    left = len(_FAMILIES)
    families = [(_IF_EQUAL, left - place, 0, family) for place, family in enumerate(_FAMILIES)]
    for call in ((41, 198), (53, 199)):  # socket, socketpair
        yield from at(call, [_argument(0), *families, _refuse(errno.EAFNOSUPPORT)])


def _argument(place: int) -> _Step:
    # The lower half; none of these arguments has more bits that count, on little-endian machines as all of ours.
    return _LOAD, 0, 0, _FIRST_ARGUMENT + 8 * place


def _refuse(error: int) -> _Step:
    return _RETURN, 0, 0, _REFUSE | error
