"""What agents never see, wherever it lies in a workspace: one table, each row with its reason."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

_CREDENTIALS: Final = "it may hold credentials"
_KEY: Final = "it may be a private key"
_OURS: Final = "it belongs to popagent itself"

# Pattern of the last names of a path, lower case; a folder's row covers everything below it.
DENIED: Final[tuple[tuple[str, str], ...]] = (
    (".git", "it is the repository's own storage, and its configuration may hold tokens"),
    ("git~1", "it is another name of the repository's own storage"),
    (".git-credentials", _CREDENTIALS),
    (".hg", "it is the repository's own storage"),
    (".svn", "it is the repository's own storage"),
    (".popagent", _OURS),
    (".popagent-*", _OURS),
    (".codebase-index", _OURS),
    (".env", _CREDENTIALS),
    (".env.*", _CREDENTIALS),
    (".envrc", _CREDENTIALS),
    (".netrc", _CREDENTIALS),
    ("_netrc", _CREDENTIALS),
    (".npmrc", _CREDENTIALS),
    (".yarnrc.yml", _CREDENTIALS),
    (".pypirc", _CREDENTIALS),
    (".pgpass", _CREDENTIALS),
    (".my.cnf", _CREDENTIALS),
    (".htpasswd", _CREDENTIALS),
    (".dockercfg", _CREDENTIALS),
    (".vault-token", _CREDENTIALS),
    (".docker/config.json", _CREDENTIALS),
    (".cargo/credentials*", _CREDENTIALS),
    (".gem/credentials", _CREDENTIALS),
    (".config/gh", _CREDENTIALS),
    (".config/gcloud", _CREDENTIALS),
    (".aws", _CREDENTIALS),
    (".azure", _CREDENTIALS),
    (".kube", _CREDENTIALS),
    (".gnupg", _KEY),
    (".ssh", _KEY),
    ("id_rsa*", _KEY),
    ("id_dsa*", _KEY),
    ("id_ecdsa*", _KEY),
    ("id_ed25519*", _KEY),
    ("*.pem", _KEY),
    ("*.key", _KEY),
    ("*.p12", _KEY),
    ("*.pfx", _KEY),
    ("*.ppk", _KEY),
    ("*.jks", _KEY),
    ("*.keystore", _KEY),
    ("*.kdbx", _CREDENTIALS),
    ("*.tfstate", _CREDENTIALS),
    ("*.tfstate.backup", _CREDENTIALS),
)

# Templates that projects keep beside the real file; they are documentation.
ALLOWED: Final = (".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults")


class PathTable:
    """Rows of a pattern and a reason; a pattern names the last names of a path, lower case, and covers what is below.

    Names are compared as the laxest file systems do: without case, without characters that have no width, without
    blanks and dots at their end. One that is `.git` to such a system is `.git` here.
    """

    def __init__(self, rows: Iterable[tuple[str, str]], allowed: Iterable[str] = ()) -> None:
        rows = tuple(rows)
        self._allowed = frozenset(allowed)
        self._exact = {pattern: reason for pattern, reason in rows if "/" not in pattern and "*" not in pattern}
        self._patterns = tuple(row for row in rows if "/" not in row[0] and "*" in row[0])
        self._deeper = tuple((pattern.split("/"), reason) for pattern, reason in rows if "/" in pattern)
        # A walk asks for the same few names again and again: those of the folders above each file.
        self._of_name = lru_cache(maxsize=16_384)(self._reason_of_name)

    def why(self, parts: Sequence[str]) -> str | None:
        """Return the reason of the first row that covers the path below the workspace, None when none does."""
        for end, name in enumerate(parts, start=1):
            plain, reason, ends_a_row = self._of_name(name)
            if plain in self._allowed:
                continue
            if reason is not None:
                return reason
            if ends_a_row and end > 1:
                above = [self._of_name(step)[0] for step in parts[:end]]
                for pattern, why in self._deeper:
                    if len(pattern) <= end and all(map(fnmatchcase, above[end - len(pattern) :], pattern)):
                        return why
        return None

    def _reason_of_name(self, name: str) -> tuple[str, str | None, bool]:
        plain = _plain(name)
        reason = self._exact.get(plain)
        if reason is None:
            reason = next((why for pattern, why in self._patterns if fnmatchcase(plain, pattern)), None)
        return plain, reason, any(fnmatchcase(plain, pattern[-1]) for pattern, _ in self._deeper)


def _plain(name: str) -> str:
    if not name.isascii():
        visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
        name = unicodedata.normalize("NFKC", visible)
    return name.casefold().rstrip(" .") or name


_TABLE: Final = PathTable(DENIED, ALLOWED)


def why_denied(parts: Sequence[str]) -> str | None:
    """Return why the path below the workspace is hidden from agents, None when it is not."""
    return _TABLE.why(parts)
