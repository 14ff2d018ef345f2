"""What agents never see, wherever it lies in a workspace: one table, each row with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

_CREDENTIALS: Final = "it may hold credentials"
_KEY: Final = "it may be a private key"
_OURS: Final = "it belongs to popagent itself"

# Pattern of the last names of a path, lower case; a folder's row covers everything below it.
DENIED: Final[tuple[tuple[str, str], ...]] = (
    (".git", "it is the repository's own storage, and its configuration may hold tokens"),
    (".git-credentials", _CREDENTIALS),
    (".hg", "it is the repository's own storage"),
    (".svn", "it is the repository's own storage"),
    (".popagent", _OURS),
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


def why_denied(parts: Sequence[str]) -> str | None:
    """Return why the path below the workspace is hidden from agents, None when it is not.

    Names are compared without case, because some file systems do not tell `.GIT` from `.git`.
    """
    names = [name.casefold() for name in parts]
    for end, name in enumerate(names, start=1):
        if name in ALLOWED:
            continue
        for pattern, reason in DENIED:
            length = pattern.count("/") + 1
            if length <= end and fnmatchcase("/".join(names[end - length : end]), pattern):
                return reason
    return None
