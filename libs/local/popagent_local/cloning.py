"""Clone a repository below the workspace root, as the operator who asked for it; a half-made clone is never seen."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from popagent_kit.errors import ConflictError, DependencyError, InvalidInputError

ADDRESSES: Final = "https://…, ssh://… , git://… or user@host:path"
_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)")
# As git has it: a colon before any slash, and what stands before it is a host.
_SHORT: Final = re.compile(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9.][A-Za-z0-9.-]*:(?!:)[^-\s\x00-\x1f]\S*")
_FOLDER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_NO_CREDENTIALS: Final = (
    "An address with a user, password or token in it would be stored in the checkout. Leave it out: git asks your "
    "credential helper, or you, or uses your ssh key."
)
# What a clone may do: no hook of a template, no submodule, no program as a transport, no redirect out of TLS.
_CONFIG: Final = (
    "core.hooksPath=/dev/null",
    "protocol.ext.allow=never",
    "protocol.file.allow=never",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "core.fsmonitor=false",
)


# Set where this runs from a hook or an alias, they would lead the clone elsewhere.
_OF_ANOTHER_REPOSITORY: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
        "GIT_TEMPLATE_DIR",
        "GIT_WORK_TREE",
    }
)


class CloneFailedError(DependencyError):
    """Git could not clone this repository; what it said stands above."""

    code = "clone_failed"
    retryable = False


@dataclass(frozen=True)
class Source:
    """An address that may be cloned, and the folder that its last part suggests."""

    url: str
    folder: str


def is_address(text: str) -> bool:
    """Tell whether this names a repository elsewhere, allowed or not, and no folder."""
    return _HAS_SCHEME.match(text) is not None or (":" in text.partition("/")[0] and not os.path.isabs(text))


def source_of(text: str, folder: str | None = None) -> Source:
    """Return what to clone, into `folder` if it is given; no message repeats an address that may hold a password.

    Raises:
        InvalidInputError: Another kind of address, a user or password in it, or a folder that is no plain name.
    """
    if not text.isprintable() or " " in text or text.startswith("-"):
        raise InvalidInputError(f"This is no address of a repository. Use {ADDRESSES}.")
    path = _short_path(text) if _HAS_SCHEME.match(text) is None else _url_path(text)
    suggested = path.rstrip("/").rpartition("/")[2].removesuffix(".git")
    name = folder or suggested
    if _FOLDER.fullmatch(name) is None:
        raise InvalidInputError(
            "The folder must be a plain name of letters, digits, '.', '_' and '-'. Give one with --folder."
        )
    return Source(text, name)


def _short_path(text: str) -> str:
    if _SHORT.fullmatch(text) is None:
        raise InvalidInputError(f"This is no address of a repository. Use {ADDRESSES}.")
    path = text.partition(":")[2]
    if "@" in path:  # as in user:password@host, which is no form of git's, and would be stored all the same
        raise InvalidInputError(_NO_CREDENTIALS)
    return path


def _url_path(text: str) -> str:
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port
    except ValueError as error:
        raise InvalidInputError(f"This is no address of a repository. Use {ADDRESSES}.") from error
    if parts.scheme not in ("https", "ssh", "git"):
        raise InvalidInputError(f"Repositories are not cloned from {parts.scheme}: addresses. Use {ADDRESSES}.")
    if not host or host.startswith("-") or not parts.path.strip("/"):
        raise InvalidInputError(f"This address names no repository. Use {ADDRESSES}.")
    secret = parts.password is not None or (parts.username is not None and parts.scheme != "ssh")
    if secret or parts.query or parts.fragment:
        raise InvalidInputError(_NO_CREDENTIALS)
    if parts.username is not None and _FOLDER.fullmatch(parts.username) is None:
        raise InvalidInputError(f"This is no address of a repository. Use {ADDRESSES}.")
    return parts.path


def clone(source: Source, root: Path, *, progress: bool) -> Path:
    """Clone into `root`; git speaks to the terminal itself, and may ask there. Returns the new folder.

    Raises:
        ConflictError: There is something in that place, or no git.
        CloneFailedError: Git failed; nothing is left of it, as after Ctrl-C.
    """
    target = root / source.folder
    git = shutil.which("git")
    if git is None:
        raise ConflictError("Git is not installed here. Install it, then try again.")
    if os.path.lexists(target):
        raise ConflictError(f"There is something at {source.folder} below the workspace root. Choose another --folder.")
    # On the same file system, hidden from everybody, and moved in one step when it is whole.
    with tempfile.TemporaryDirectory(prefix=".cloning-", dir=root, ignore_cleanup_errors=True) as making:
        made = Path(making) / source.folder
        settings = [part for pair in _CONFIG for part in ("-c", pair)]
        options = ["--template=", "--no-recurse-submodules", "--progress" if progress else "--quiet"]
        command = [git, *settings, "clone", *options, "--", source.url, str(made)]
        done = subprocess.run(command, env=_environment(asks=progress), cwd=making, check=False)
        if done.returncode != 0:
            raise CloneFailedError
        made.rename(target)
    return target


def _environment(*, asks: bool) -> dict[str, str]:
    """Return the operator's own environment, since it is they who clone: keys, agent, helpers, proxy, authorities."""
    kept = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER_REPOSITORY}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "https:ssh:git",
        "GIT_TERMINAL_PROMPT": "1" if asks else "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
