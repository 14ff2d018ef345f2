"""The filter program, run by a small interpreter of the instructions it uses; real calls are tried in commands."""

from __future__ import annotations

import errno
import struct

import pytest

from popagent_sandbox.seccomp import UnknownArchitectureError, filter_program

ALLOWED = 0
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Return the error that the program answers with, 0 when it allows the call."""
    data = struct.pack("=IIQ6Q", number, audit or AUDIT[machine], 0, *(*arguments, *[0] * 6)[:6])
    steps = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    at, value = 0, 0
    while True:
        code, then, otherwise, k = steps[at]
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
            at += 1
        elif code == 0x06:
            return 0 if k == 0x7FFF0000 else k & 0xFFFF
        else:
            holds = {0x15: value == k, 0x35: value >= k, 0x45: bool(value & k)}[code]
            at += 1 + (then if holds else otherwise)


@pytest.mark.parametrize(
    ("call", "x86_64", "aarch64", "answer"),
    [
        ("read", (0,), (63,), ALLOWED),
        ("execve", (59,), (221,), ALLOWED),
        ("a thread", (56, 0x3D0F00), (220, 0x3D0F00), ALLOWED),
        ("a process", (56, 17), (220, 17), ALLOWED),
        ("a user namespace", (56, 0x10000000 | 17), (220, 0x10000000 | 17), errno.EPERM),
        ("a mount namespace", (56, 0x00020000), (220, 0x00020000), errno.EPERM),
        ("clone3", (435,), (435,), errno.ENOSYS),
        ("openat2", (437,), (437,), errno.ENOSYS),
        ("fallocate", (285,), (47,), errno.EOPNOTSUPP),
        ("keyctl", (250,), (219,), errno.EPERM),
        ("ptrace", (101,), (117,), errno.EPERM),
        ("a call of tomorrow", (470,), (470,), errno.ENOSYS),
        ("fchmod 0755", (91, 3, 0o755), (52, 3, 0o755), ALLOWED),
        ("fchmod 4755", (91, 3, 0o4755), (52, 3, 0o4755), errno.EPERM),
        ("openat, reading, with rubbish for a mode", (257, 0, 0, 0, 0o7777), (56, 0, 0, 0, 0o7777), ALLOWED),
        ("openat, making 0644", (257, 0, 0, 0o101, 0o644), (56, 0, 0, 0o101, 0o644), ALLOWED),
        ("openat, making 4644", (257, 0, 0, 0o101, 0o4644), (56, 0, 0, 0o101, 0o4644), errno.EPERM),
        ("window size", (16, 0, 0x5413), (29, 0, 0x5413), ALLOWED),
        ("TIOCSTI", (16, 0, 0x5412), (29, 0, 0x5412), errno.EPERM),
        ("TIOCSTI with a high half", (16, 0, 0x1_0000_5412), (29, 0, 0x1_0000_5412), errno.EPERM),
        *(
            (f"family {family}", (41, family), (198, family), answer)
            for family, answer in ((1, ALLOWED), (2, ALLOWED), (10, ALLOWED), (16, ALLOWED), (40, errno.EAFNOSUPPORT))
        ),
    ],
)
def test_calls_are_answered(call: str, x86_64: tuple[int, ...], aarch64: tuple[int, ...], answer: int) -> None:
    assert verdict("x86_64", *x86_64) == answer
    assert verdict("aarch64", *aarch64) == answer


def test_calls_of_other_kinds_do_not_exist() -> None:
    assert verdict("x86_64", 0x4000_0000 | 1) == errno.ENOSYS  # x32
    assert verdict("x86_64", 3, audit=0x40000003) == errno.ENOSYS  # 32 bits
    assert verdict("aarch64", 3, audit=0x40000028) == errno.ENOSYS
    assert verdict("x86_64", 90, 0, 0o4755) == errno.EPERM  # chmod
    assert verdict("x86_64", 2, 0, 0o101, 0o4755) == errno.EPERM  # open
    assert verdict("x86_64", 172) == errno.EPERM  # iopl


def test_every_jump_stays_within_the_program() -> None:
    for machine in AUDIT:
        steps = list(struct.iter_unpack("=HBBI", filter_program(machine)))
        assert all(at + 1 + max(step[1], step[2]) < len(steps) for at, step in enumerate(steps) if step[0] & 7 == 5)
        assert len(steps) < 300


def test_a_processor_without_a_table_is_refused() -> None:
    with pytest.raises(UnknownArchitectureError):
        filter_program("riscv64")
