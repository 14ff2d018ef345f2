"""What an operator gives the commands of a workspace, in a file that no agent and no request can write.

`<home>/sandbox/<path of the workspace>.toml` may hold `path`, `mounts`, `environment` and `prepare`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from popagent_kit.errors import ConfigurationError
from popagent_kit.text import one_line
from popagent_sandbox.grants import Grant, GrantRefusedError, Mount
from popagent_telemetry import is_secret_name, register_secret

FOLDER: Final = "sandbox"
LARGEST_BYTES: Final = 64 * 1024
_Text = Annotated[str, Field(min_length=1, max_length=4_096)]


class GrantFileError(ConfigurationError):
    """The sandbox file of this workspace cannot be used."""


@dataclass(frozen=True, slots=True)
class Granted:
    """`prepare` is a shell command of the operator's own; agents never run it."""

    grant: Grant
    prepare: str | None = None


class _Mount(BaseModel):
    model_config = ConfigDict(extra="forbid")

    source: _Text
    target: _Text


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    path: list[_Text] = Field(default_factory=list, max_length=50)
    mounts: list[_Mount] = Field(default_factory=list, max_length=50)
    environment: dict[str, Annotated[str, Field(max_length=32_768)]] = Field(default_factory=dict, max_length=200)
    prepare: Annotated[str, Field(min_length=1, max_length=32_768)] | None = None


NOTHING: Final = Granted(Grant())


def grant_file(home: Path, workspace_path: str) -> Path:
    """Return where the file of a workspace lies; `workspace_path` is the stored one, relative to the root."""
    return home / FOLDER / f"{workspace_path}.toml"


def granted(home: Path, workspace_path: str) -> Granted:
    """Return what the operator gives; nothing when there is no file.

    Values of variables that sound like a credential are redacted from then on.

    Raises:
        GrantFileError: The file cannot be read or used; the message names it below the home, and says why.
    """
    place = grant_file(home, workspace_path)
    try:
        with place.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return NOTHING
    except OSError as error:
        raise _unusable(workspace_path, error.strerror or "it cannot be read") from error
    if len(content) > LARGEST_BYTES:
        raise _unusable(workspace_path, f"it has more than {LARGEST_BYTES} bytes")
    try:
        given = _File.model_validate(tomllib.loads(content.decode()))
        mounts = tuple(Mount(mount.source, mount.target) for mount in given.mounts)
        found = Granted(Grant(mounts, tuple(given.path), given.environment), given.prepare)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, GrantRefusedError) as error:
        raise _unusable(workspace_path, str(error)) from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _unusable(workspace_path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    for name, value in given.environment.items():
        if is_secret_name(name):
            register_secret(value, name)
    return found


def _unusable(workspace_path: str, reason: str) -> GrantFileError:
    return GrantFileError(
        f"The file {FOLDER}/{workspace_path}.toml in popagent's home cannot be used: {one_line(reason, 300)}. "
        "Correct it, or remove it."
    )
