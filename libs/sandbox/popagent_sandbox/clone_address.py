"""Which addresses of repositories are cloned, and which folder they suggest."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from popagent_kit.errors import InvalidInputError
from popagent_web.addresses import gives_credentials, spelled

ADDRESSES: Final = "https://…, ssh://…, git://… or user@host:path"
LONGEST: Final = 2_000
_HAS_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|:)")
# As git has it: a colon before any slash, and what stands before it is a host.
_SHORT: Final = re.compile(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9.][A-Za-z0-9.-]*:(?!:)[^-\s\x00-\x1f]\S*")
_FOLDER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_NONE: Final = f"This is no address of a repository. Use {ADDRESSES}."
_NO_CREDENTIALS: Final = (
    "An address with a user, password or token in it would be stored in the checkout. Leave it out: git uses the ssh "
    "key or the credential helper of the account that popagent runs as."
)


@dataclass(frozen=True)
class Source:
    """An address that may be cloned, and the folder that it goes to."""

    url: str
    folder: str


def is_address(text: str) -> bool:
    """Tell whether this names a repository elsewhere, allowed or not, and no folder."""
    return _HAS_SCHEME.match(text) is not None or (":" in text.partition("/")[0] and not os.path.isabs(text))


def source_of(text: str, folder: str | None = None) -> Source:
    """Return what to clone, into `folder` if it is given; no message repeats an address that may hold a password.

    Raises:
        InvalidInputError: Another kind of address, a user or password in it, or a folder that is no plain name; the
            field is `url` or `directory`.
    """
    if not text.isprintable() or " " in text or text.startswith("-") or len(text) > LONGEST:
        raise _refused(_NONE)
    path = _short_path(text) if _HAS_SCHEME.match(text) is None else _url_path(text)
    name = path.rstrip("/").rpartition("/")[2].removesuffix(".git") if folder is None else folder
    if _FOLDER.fullmatch(name) is None:
        raise InvalidInputError(
            "The directory must be one plain name of letters, digits, '.', '_' and '-'.", field="directory"
        )
    return Source(text, name)


def _refused(reason: str) -> InvalidInputError:
    return InvalidInputError(reason, field="url")


def _short_path(text: str) -> str:
    if _SHORT.fullmatch(text) is None:
        raise _refused(_NONE)
    _refuse_clouds(text.partition(":")[0].rpartition("@")[2])
    path = text.partition(":")[2]
    if "@" in path:  # as in user:password@host, which is no form of git's, and would be stored all the same
        raise _refused(_NO_CREDENTIALS)
    return path


def _url_path(text: str) -> str:
    try:
        parts = urlsplit(text)
        host = parts.hostname
        _ = parts.port
    except ValueError as error:
        raise _refused(_NONE) from error
    if parts.scheme not in ("https", "ssh", "git"):
        raise _refused(f"Repositories are not cloned from {parts.scheme}: addresses. Use {ADDRESSES}.")
    if not host or host.startswith("-") or not parts.path.strip("/"):
        raise _refused(f"This address names no repository. Use {ADDRESSES}.")
    _refuse_clouds(host)
    secret = parts.password is not None or (parts.username is not None and parts.scheme != "ssh")
    if secret or parts.query or parts.fragment:
        raise _refused(_NO_CREDENTIALS)
    if parts.username is not None and _FOLDER.fullmatch(parts.username) is None:
        raise _refused(_NONE)
    return parts.path


def _refuse_clouds(host: str) -> None:
    found = spelled(host.lower())
    if found is not None and gives_credentials(str(found)):
        raise _refused("Clouds give credentials at this address, and no repository is fetched from there.")
