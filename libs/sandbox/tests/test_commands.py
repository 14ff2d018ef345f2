"""What a command can and cannot do; each is a real one, in a real sandbox."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from popagent_sandbox import cgroup
from popagent_sandbox.census import Census, Count
from popagent_sandbox.commands import CommandRefusedError, Commands, NoSuchCommandError
from popagent_sandbox.confined import ConfinementError
from popagent_sandbox.confinement import confinement, confinement_problem
from popagent_sandbox.contained import ContainedFolder
from popagent_sandbox.grants import Grant, Limits, Mount
from popagent_sandbox.hidden import TooMuchToHideError

pytestmark = pytest.mark.skipif(confinement_problem() is not None, reason=str(confinement_problem()))

PYTHON = Grant(
    mounts=(Mount(os.path.realpath(sys.base_prefix), "/opt/python"),),
    path=("/opt/python/bin",),
    environment={"PYTHONDONTWRITEBYTECODE": "1"},
)
SMALL = Limits(processes=60, memory_bytes=200 << 20, temporary_bytes=8 << 20, file_bytes=4 << 20)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def folder(workspace: Path) -> Iterator[ContainedFolder]:
    with ContainedFolder(workspace) as opened:
        yield opened


@pytest.fixture
def commands(folder: ContainedFolder) -> Iterator[Commands]:
    made = Commands(folder)
    yield made
    made.close()


@pytest.fixture
def small(folder: ContainedFolder) -> Iterator[Commands]:
    made = Commands(folder, PYTHON, SMALL)
    yield made
    made.close()


def marked_processes(mark: str) -> list[int]:
    """Return the processes of this machine, inside of sandboxes as well, whose arguments hold `mark`."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            arguments = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in arguments and int(name) != os.getpid():
            found.append(int(name))
    return found


def new_mark() -> str:
    return f"4{uuid.uuid4().int % 10**12}"


async def until_sleeping(mark: str, count: int) -> None:
    """Return as soon as so many `sleep` with `mark` run; their sandboxes are complete then."""
    while True:
        arguments = [Path(f"/proc/{pid}/cmdline") for pid in marked_processes(mark)]
        with suppress(OSError):
            if sum(file.read_bytes().startswith(b"sleep\0") for file in arguments) >= count:
                return
        await asyncio.sleep(0.01)


async def printed(commands: Commands, command: str, timeout_s: float = 60) -> str:
    ran = await commands.run(command, timeout_s)
    return ran.printed.head


async def test_a_command_runs_in_the_workspace_and_its_status_is_told(workspace: Path, commands: Commands) -> None:
    (workspace / "a.txt").write_text("found\n")

    ran = await commands.run("pwd; cat a.txt; echo to stderr >&2; exit 7")

    assert (ran.ended.status, ran.printed.head) == (7, "/workspace\nfound\nto stderr\n")


async def test_a_command_that_a_signal_ended_has_its_status(commands: Commands) -> None:
    assert (await commands.run("kill -9 $$")).ended.status == 137


async def test_what_is_made_belongs_to_who_runs_popagent(workspace: Path, commands: Commands) -> None:
    await commands.run("mkdir made; echo x > made/file; id -u > id")

    status = (workspace / "made" / "file").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (os.getuid(), os.getgid(), 0o644)
    assert (workspace / "id").read_text() == "1000\n"


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


async def test_a_fork_bomb_is_bounded_and_leaves_nothing(small: Commands) -> None:
    mark = new_mark()
    begun = time.process_time()  # ours alone: whoever counts them must not be kept from everything else

    ran = await small.run(f"bomb() {{ bomb {mark} | bomb {mark} & }}; bomb; sleep {mark}", 4)

    assert ran.ended.status != 0
    assert time.process_time() - begun < 1
    assert marked_processes(mark) == []
    assert await printed(small, "echo next") == "next\n"


def group_of(pid: int) -> Path | None:
    """The control group of a sandbox that the process is in."""
    for group in cgroup.ROOT.rglob(f"{cgroup.PREFIX}*"):
        with suppress(OSError):
            if str(pid) in (group / "cgroup.procs").read_text().split():
                return group
    return None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's programs are bounded by a control group")
async def test_programs_of_root_are_refused_above_the_bound_and_no_group_stays(small: Commands) -> None:
    mark = new_mark()
    name = await small.start(f"sleep {mark} & echo up; wait")
    assert (await small.look(name, 10)).printed.head == "up\n"
    group = group_of(marked_processes(mark)[-1])
    if group is None:
        pytest.skip("root may make no control group here")

    ran = await small.run(
        "python3 -c 'import os, time\nfor _ in range(90):\n    if os.fork() == 0:\n        time.sleep(30)' 2>&1"
    )
    await small.end(name)

    assert "Resource temporarily unavailable" in ran.printed.head
    assert ran.ended.why != "it ran more than 60 programs at once"
    assert not group.exists()


async def test_of_too_many_programs_no_more_are_counted_than_shows_it(commands: Commands) -> None:
    mark = new_mark()
    name = await commands.start(f"for i in 1 2 3 4 5 6; do sleep {mark} & done; echo up; wait")
    assert (await commands.look(name, 10)).printed.head == "up\n"
    census = Census(marked_processes(mark)[-1])

    assert census.take(4) == Count(5)
    assert census.take(100).processes >= 7
    assert census.take(100).memory_bytes > 0
    census.close()


async def test_memory_is_bounded_for_one_program_and_for_all_together(small: Commands) -> None:
    alone = await small.run("python3 -c 'x = bytearray(400 << 20)'")
    together = await small.run(
        "for i in 1 2 3 4; do python3 -c 'x = bytearray(90 << 20); import time; time.sleep(60)' & done; wait"
    )

    assert (alone.ended.status, "MemoryError" in alone.printed.head) == (1, True)
    assert together.ended.why == "it used more than 200 MiB of memory"


async def test_files_and_temporary_files_are_bounded(small: Commands) -> None:
    ran = await small.run(
        "head -c 5M /dev/zero > large; ls -s large; head -c 4M /dev/zero > /tmp/a; cp /tmp/a /tmp/b; cp /tmp/a /tmp/c"
    )

    assert "File size limit exceeded" in ran.printed.head or "File too large" in ran.printed.head
    assert "No space left on device" in ran.printed.head


async def gigabytes(commands: Commands, count_mib: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    ran = await commands.run(f"head -c {count_mib}M /dev/zero | tr '\\0' x; echo; echo end", 300)

    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ran.ended.status == 0
    assert ran.printed.left_out_bytes > (count_mib - 1) << 20
    assert ran.printed.tail.endswith("x\nend\n")
    assert grown_kb < 20_000


async def test_memory_does_not_grow_with_the_output(commands: Commands) -> None:
    await gigabytes(commands, 128)


@pytest.mark.full
async def test_memory_does_not_grow_with_a_gigabyte_of_output(commands: Commands) -> None:
    await gigabytes(commands, 1024)


async def test_endless_output_ends_with_the_time(commands: Commands) -> None:
    ran = await commands.run("yes", 1)

    assert ran.ended.why == "it took longer than 1 s"
    assert ran.printed.head.startswith("y\ny\n")


async def test_what_takes_too_long_is_ended_with_all_it_started(commands: Commands) -> None:
    mark = new_mark()

    ran = await commands.run(
        f"echo begun; (setsid sleep {mark} &); nohup sleep {mark} & trap '' TERM INT; sleep {mark}", 1
    )

    assert (ran.ended.status, ran.ended.why, ran.printed.head) == (None, "it took longer than 1 s", "begun\n")
    assert ran.took_s < 10
    assert marked_processes(mark) == []


async def test_cancelling_ends_the_whole_tree_before_it_returns(commands: Commands) -> None:
    mark = new_mark()
    running = asyncio.create_task(
        commands.run(f"(setsid sh -c '(sleep {mark} &) ; sleep {mark}' &); sleep {mark}", 600)
    )
    await until_sleeping(mark, 3)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert marked_processes(mark) == []


async def test_what_a_command_leaves_behind_ends_with_it(commands: Commands) -> None:
    mark = new_mark()

    ran = await commands.run(f"sleep {mark} & (setsid sleep {mark} &); echo done", 60)

    assert (ran.ended.status, ran.printed.head) == (0, "done\n")
    assert marked_processes(mark) == []


PARENT = """
import asyncio, sys
from pathlib import Path
from popagent_sandbox.commands import Commands
from popagent_sandbox.contained import ContainedFolder

async def main():
    commands = Commands(ContainedFolder(Path(sys.argv[1])))
    await commands.start(f"(setsid sleep {sys.argv[2]} &); sleep {sys.argv[2]}")
    await commands.run(f"(setsid sleep {sys.argv[2]} &); sleep {sys.argv[2]}")

asyncio.run(main())
"""


async def test_kill_9_of_the_parent_ends_everything(workspace: Path) -> None:
    mark = new_mark()
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(workspace), mark])
    await until_sleeping(mark, 4)

    parent.kill()
    parent.wait()

    while marked_processes(mark):  # the test's own time limit bounds this
        await asyncio.sleep(0.01)


async def test_credentials_and_the_repositorys_storage_are_covered(workspace: Path, commands: Commands) -> None:
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("canary")
    (workspace / "sub").mkdir()
    for name in (".env", "sub/.npmrc", "sub/server.pem", ".env.example"):
        (workspace / name).write_text("canary" if name != ".env.example" else "EXAMPLE=\n")

    text = await printed(
        commands,
        "ls -A .git; cat .git/config .env sub/.npmrc sub/server.pem; mv .env e; rm -rf .git; mv sub other;"
        "cat other/*.pem; echo x > .git/hook; chmod 777 .git; cat .env.example",
    )

    assert "canary" not in text
    assert text.count("Permission denied") == 4
    assert text.endswith("EXAMPLE=\n")
    assert (workspace / ".git" / "config").read_text() == (workspace / ".env").read_text() == "canary"


async def test_what_is_protected_can_be_read_and_not_changed(workspace: Path, commands: Commands) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / "sub").mkdir()
    (workspace / "node_modules").mkdir()
    for name in ("AGENTS.md", ".mcp.json", ".vscode/tasks.json", "sub/AGENTS.md", "node_modules/AGENTS.md"):
        (workspace / name).write_text("as it was\n")
    (workspace / "sub" / "agents-link.md").symlink_to("../AGENTS.md")

    ran = await commands.run(
        "cat AGENTS.md; for name in AGENTS.md .mcp.json .vscode/tasks.json .vscode/new sub/AGENTS.md; do"
        " (echo changed > $name) && echo $name; rm -f $name; mv $name other; done 2>/dev/null; mv sub moved;"
        "(echo changed > moved/AGENTS.md) 2>/dev/null; echo changed > node_modules/AGENTS.md; exit 0"
    )

    assert (ran.ended.status, ran.printed.head) == (0, "as it was\n")
    unchanged = ("AGENTS.md", ".mcp.json", ".vscode/tasks.json", "moved/AGENTS.md")
    assert {(workspace / name).read_text() for name in unchanged} == {"as it was\n"}
    assert (workspace / "node_modules" / "AGENTS.md").read_text() == "changed\n"
    assert not (workspace / ".vscode" / "new").exists()


async def test_only_so_many_are_protected_and_those_at_the_top_first(workspace: Path, commands: Commands) -> None:
    for number in range(210):
        (workspace / f"sub{number}").mkdir()
        (workspace / f"sub{number}" / "AGENTS.md").touch()
    (workspace / "AGENTS.md").touch()

    text = await printed(
        commands, "for file in AGENTS.md */AGENTS.md; do (echo x > $file) 2>/dev/null && echo y; done | wc -l"
    )

    assert text == "11\n"
    assert (workspace / "AGENTS.md").read_text() == ""


async def test_a_command_changes_what_is_installed(workspace: Path, commands: Commands) -> None:
    for name in ("pyproject.toml", "uv.lock", "package.json", "package-lock.json", "requirements.txt", "Cargo.toml"):
        (workspace / name).write_text("as it was\n")

    ran = await commands.run("for file in *; do echo changed > new && mv new $file || exit 1; done")

    assert ran.ended.status == 0
    assert {file.read_text() for file in workspace.iterdir()} == {"changed\n"}


async def test_credentials_that_came_later_are_covered_from_the_next_command_on(
    workspace: Path, commands: Commands
) -> None:
    (workspace / "sub").mkdir()
    os.utime(workspace / "sub", (1, 1))
    await commands.run(":")
    (workspace / "sub" / "id_rsa").write_text("canary")

    assert "Permission denied" in await printed(commands, "cat sub/id_rsa")


async def test_a_workspace_with_too_much_to_cover_is_refused(workspace: Path, commands: Commands) -> None:
    for number in range(401):
        (workspace / f"{number}.pem").touch()

    with pytest.raises(TooMuchToHideError, match="401 paths in this workspace may hold credentials"):
        await commands.run("echo x")


async def test_a_command_in_the_background_is_looked_at_and_ended(workspace: Path, commands: Commands) -> None:
    mark = new_mark()
    name = await commands.start(f"echo first; while [ ! -e go ]; do sleep 0.01; done; echo second; sleep {mark}")

    seen = ""
    while "first" not in seen:
        seen += (await commands.look(name, 5)).printed.head
    (workspace / "go").touch()
    more = ""
    while "second" not in more:
        more += (await commands.look(name, 5)).printed.head
    look = await commands.look(name)
    ended = await commands.end(name)

    assert (seen, more, look.printed.head, look.ended) == ("first\n", "second\n", "", None)
    assert ended.ended is not None
    assert ended.ended.why == "it was stopped"
    assert marked_processes(mark) == []


async def test_a_command_in_the_background_that_ends_by_itself_tells_its_status(commands: Commands) -> None:
    name = await commands.start("exit 4")

    look = await commands.look(name, 60)

    assert look.ended.status == 4


async def test_closing_ends_all_and_lets_nothing_start(folder: ContainedFolder) -> None:
    mark = new_mark()
    commands = Commands(folder)
    await commands.start(f"(setsid sleep {mark} &); sleep {mark}")
    running = asyncio.create_task(commands.run(f"sleep {mark}"))
    await until_sleeping(mark, 3)

    commands.close()

    assert (await running).ended.why == "its run ended"
    while marked_processes(mark):
        await asyncio.sleep(0.01)
    with pytest.raises(Exception, match="has ended"):
        await commands.run("echo x")


async def test_few_commands_run_in_the_background_at_once(commands: Commands) -> None:
    names = [await commands.start("sleep 100") for _ in range(4)]

    with pytest.raises(Exception, match="4 commands run in the background already"):
        await commands.start("sleep 100")
    with pytest.raises(NoSuchCommandError, match=r"p9\. There is: p1, p2, p3, p4"):
        await commands.look("p9")
    await commands.end(names[0])
    assert await commands.start("true") == "p5"


@pytest.mark.parametrize("command", ["echo \0", "echo \ud800", "#" * 100_001])
async def test_a_command_that_is_no_text_or_too_long_is_refused(commands: Commands, command: str) -> None:
    with pytest.raises(CommandRefusedError):
        await commands.run(command)


DENIED = """
import asyncio, sys, tempfile
from pathlib import Path
from popagent_sandbox.commands import Commands
from popagent_sandbox.confined import ConfinementError
from popagent_sandbox.contained import ContainedFolder

async def main():
    folder = Path(tempfile.mkdtemp())
    try:
        await Commands(ContainedFolder(folder)).run("touch ran")
    except ConfinementError as error:
        print(error.message, (folder / "ran").exists())

asyncio.run(main())
"""


async def test_where_namespaces_are_denied_nothing_runs_and_the_reason_is_told() -> None:
    program = confinement().program or ""
    without = [
        program,
        "--unshare-user",
        "--disable-userns",
        "--dev-bind",
        "/",
        "/",
        "--",
        sys.executable,
        "-c",
        DENIED,
    ]

    done = await asyncio.to_thread(subprocess.run, without, capture_output=True, text=True, check=False)

    assert "Commands cannot be confined here, so agents cannot run any (" in done.stdout
    assert "docs/sandbox.md" in done.stdout
    assert done.stdout.endswith(" False\n")


async def test_a_sandbox_that_cannot_be_set_up_runs_nothing_and_says_why(folder: ContainedFolder) -> None:
    commands = Commands(folder, Grant((Mount("/nowhere/at/all", "/opt/gone"),)))

    with pytest.raises(ConfinementError, match=r"could not be set up: .*No such file"):
        await commands.run("echo ran > ran")

    assert os.listdir(folder.root) == []
