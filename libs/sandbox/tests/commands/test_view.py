"""What a command sees and reaches: the workspace, what the operator gives, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from libs.sandbox.tests.commands.processes import marked_processes, new_mark, printed, until_sleeping
from popagent_sandbox import devices
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grants import Grant, Mount


async def test_the_environment_is_empty_but_for_what_is_needed(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POPAGENT_SECRET_KEY", "canary")

    text = await printed(commands, "env; cat /proc/*/environ | tr '\\0' '\\n'")

    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == {"PATH", "HOME", "LANG"}
    assert "canary" not in text


async def test_the_operator_adds_mounts_path_and_environment(folder: ContainedFolder, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "hello").write_text('#!/bin/sh\necho "hello $WHO"\n')
    (tools / "hello").chmod(0o755)
    grant = Grant((Mount(str(tools), "/opt/tools"),), ("/opt/tools",), {"WHO": "you"})

    text = await printed(Commands(folder, grant), "hello; touch /opt/tools/x")

    assert text.startswith("hello you\n")
    assert "Read-only file system" in text


async def test_the_environment_is_not_seen_in_a_list_of_processes(folder: ContainedFolder) -> None:
    value, mark = new_mark(), new_mark()
    commands = Commands(folder, Grant(environment={"WHO": value}))
    name = await commands.start(f"sleep {mark}")
    await until_sleeping(mark, 1)

    assert marked_processes(value) == []
    await commands.end(name)


async def test_there_is_no_network_not_even_to_this_machine(commands: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        text = await printed(
            commands,
            f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>&1; (exec 3<>/dev/tcp/192.0.2.1/80) 2>&1; ls /sys/class/net",
        )

        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert "Connection refused" in text
    assert "Network is unreachable" in text


async def test_a_command_can_talk_to_itself_over_the_loopback(small: Commands) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname());"
        "a, _ = s.accept(); c.sendall(b'heard'); print(a.recv(9).decode())"
    )

    assert await printed(small, f'python3 -c "{script}"') == "heard\n"


async def test_nothing_outside_can_be_read(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("canary")
    monkeypatch.setenv("HOME", str(home))
    (workspace / "link").symlink_to(home / ".ssh" / "id_ed25519")

    text = await printed(
        commands,
        f"cat {home}/.ssh/id_ed25519 ~/.ssh/id_ed25519 link /etc/shadow ../home/.ssh/*; ls /root /home /var /run /work;"
        f"cat /proc/{os.getpid()}/environ /proc/1/root{home}/.ssh/id_ed25519 /proc/1/cwd/../home/.ssh/*",
    )

    assert "canary" not in text
    assert len(text.splitlines()) == text.count("No such file or directory") > 8


async def test_other_processes_are_not_seen(commands: Commands) -> None:
    text = await printed(commands, "ls /proc | grep -c '^[0-9]'; cat /proc/*/cmdline | tr '\\0' ' '; kill -0 -1 2>&1")

    assert int(text.split()[0]) < 8
    assert "pytest" not in text


async def test_nothing_outside_can_be_written(commands: Commands) -> None:
    ran = await commands.run(
        "for at in / /usr /etc /bin /dev /proc /opt /proc/sys/kernel ..; do touch $at/x && echo made $at; done;"
        "touch /etc/passwd && echo passwd; exit 0"
    )

    assert "made" not in ran.printed.head
    assert "passwd" not in ran.printed.head.replace("'/etc/passwd'", "")


async def test_devices_work_and_those_of_the_machine_stay_as_they_are(commands: Commands) -> None:
    if os.geteuid() == 0 and not devices.options():
        pytest.skip("root may make no devices here")

    def of_the_machine() -> list[tuple[int, int]]:
        return [(found.st_mode, found.st_ctime_ns) for found in (os.stat(f"/dev/{name}") for name in devices.NODES)]

    before = of_the_machine()
    works = "echo x > /dev/null && head -c 1 /dev/zero /dev/urandom > /dev/null && echo well; echo x > /dev/full"

    # Who runs popagent may be root, their owner; this would change nothing but the time of their last change.
    first = await printed(commands, f"{works}; chmod 666 /dev/*")
    assert of_the_machine() == before
    await commands.run("chmod 000 /dev/null /dev/full; touch -d @1 /dev/zero")
    again = await printed(commands, works)

    assert first.startswith("well\n")
    assert again.startswith("well\n")
    assert "No space left on device" in again
    assert of_the_machine() == before


async def test_settings_of_the_kernel_cannot_be_opened_for_writing(commands: Commands) -> None:
    # Root may write them in a namespace of its own as well, and one of them names a program to run outside.
    ran = await commands.run(
        "for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger /proc/mtrr"
        " /proc/sys/vm/drop_caches /proc/self/oom_score_adj; do (exec 3>>$file) 2>/dev/null && echo open $file; done;"
        "exit 0"
    )

    assert (ran.ended.status, ran.printed.head) == (0, "")


REFUSED_CALLS = """
import ctypes, errno, os, platform, fcntl
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
def call(name, number, *arguments):
    result = libc.syscall(number, *arguments)
    print(name, "allowed" if result != -1 else errno.errorcode[ctypes.get_errno()])
call("keyctl", 250 if x86 else 219, 0, -3, 0)
call("bpf", 321 if x86 else 280, 0, 0, 0)
call("perf_event_open", 298 if x86 else 241, 0, 0, -1, -1, 0)
call("mount", 165 if x86 else 40, b"none", b"/tmp", b"tmpfs", 0, 0)
call("ptrace", 101 if x86 else 117, 0, 0, 0, 0)
call("unshare", 272 if x86 else 97, 0x10000000)
call("clone", 56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)
call("clone3", 435, 0, 0)
call("io_uring_setup", 425, 1, 0)
call("newer", 900)
for name, family in (("vsock", 40), ("alg", 38), ("packet", 17)):
    call(name, 41 if x86 else 198, family, 1, 0)
for name, code in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C)):
    try:
        fcntl.ioctl(0, code, b"x")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
for mode in (0o4755, 0o2755):
    try:
        os.close(os.open(f"made-{mode:o}", os.O_CREAT | os.O_WRONLY, mode))
        print("made")
    except OSError as error:
        print("suid", errno.errorcode[error.errno])
os.close(os.open("plain", os.O_CREAT | os.O_WRONLY, 0o755))
for mode in (0o4755, 0o2755):
    try:
        os.chmod("plain", mode)
        print("changed")
    except OSError as error:
        print("chmod", errno.errorcode[error.errno])
import threading
thread = threading.Thread(target=print, args=("thread",)); thread.start(); thread.join()
"""


async def test_calls_that_lead_out_are_refused_and_ordinary_ones_are_not(workspace: Path, small: Commands) -> None:
    (workspace / "calls.py").write_text(REFUSED_CALLS)

    text = await printed(small, "python3 calls.py")

    refused = ["keyctl", "bpf", "perf_event_open", "mount", "ptrace", "unshare", "clone"]
    absent = ["clone3", "io_uring_setup", "newer"]
    assert text.splitlines() == [
        *(f"{name} {errno.errorcode[errno.EPERM]}" for name in refused),
        *(f"{name} ENOSYS" for name in absent),
        *(f"{name} EAFNOSUPPORT" for name in ("vsock", "alg", "packet")),
        *("TIOCSTI EPERM", "TIOCLINUX EPERM", "suid EPERM", "suid EPERM", "chmod EPERM", "chmod EPERM", "thread"),
    ]
