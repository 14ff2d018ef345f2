"""From the text an agent gives as a path to names below the workspace; nothing here touches the disk."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterable
from typing import Final

from popagent_kit.text import excerpt
from popagent_sandbox.errors import PathRefusedError

LONGEST_PATH_BYTES: Final = 4_096
LONGEST_NAME_BYTES: Final = 255
# Where commands see the workspace; their output names files so, and agents copy it.
COMMANDS_ROOT: Final = "/workspace"
# Some scripts and emoji are spelled with these two.
_JOINERS: Final = "\u200c\u200d"


def relative_parts(path: str, roots: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names from the workspace down to `path`; none of them is empty, `.` or `..`.

    `..` is applied to the text, before any link is followed. An absolute path is accepted below one of `roots`.

    Raises:
        PathRefusedError: The path leaves the workspace, is too long, or holds control characters.
    """
    _refuse_bad_text(path)
    if not path.startswith("/"):
        return _collapsed(path.split("/"), path)
    whole = tuple(part for part in os.path.normpath(path).split("/") if part)
    for root in roots:
        start = tuple(part for part in root.split("/") if part)
        if whole[: len(start)] == start:
            return whole[len(start) :]
    raise PathRefusedError(
        f"{shown(path)} is outside the workspace. Use a path relative to the workspace, for example README.md or src."
    )


def refuse_new_name(parts: Iterable[str]) -> None:
    """Raise PathRefusedError for a name that would mean something else elsewhere, or look like another one."""
    for name in parts:
        if "\\" in name:
            raise PathRefusedError(f"{shown(name)} holds a backslash. Separate the names of a path with '/'.")
        if name == "~":
            raise PathRefusedError("'~' means nothing here. Paths are relative to the workspace.")
        if name != name.strip():
            raise PathRefusedError(f"{shown(name)} begins or ends with a blank. Use plain names.")
        if any(unicodedata.category(char) == "Cf" and char not in _JOINERS for char in name):
            raise PathRefusedError(f"{shown(name)} holds characters that cannot be seen. Use plain names.")


def shown(path: str) -> str:
    """Return `path` quoted, cut and free of control characters, for a message."""
    return f"'{excerpt(printable(path), 200)}'"


def printable(name: str) -> str:
    """Return a file name as text: undecodable bytes and control characters are written as escapes."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace") if _has_surrogates(name) else name
    return "".join(char.encode("unicode_escape").decode() if _is_control(char) else char for char in text)


def _collapsed(names: Iterable[str], path: str) -> tuple[str, ...]:
    parts: list[str] = []
    for name in names:
        if name in ("", "."):
            continue
        if name != "..":
            parts.append(name)
        elif parts:
            parts.pop()
        else:
            raise PathRefusedError(f"{shown(path)} leads out of the workspace. Use a path below it, without '..'.")
    return tuple(parts)


def _refuse_bad_text(path: str) -> None:
    if any(_is_control(char) for char in path):
        raise PathRefusedError("A path may not hold control characters.")
    if _has_surrogates(path):
        raise PathRefusedError("A path must be valid Unicode text.")
    if len(path.encode()) > LONGEST_PATH_BYTES:
        raise PathRefusedError(f"A path may have at most {LONGEST_PATH_BYTES} bytes.")
    if any(len(name.encode()) > LONGEST_NAME_BYTES for name in path.split("/")):
        raise PathRefusedError(f"A name in a path may have at most {LONGEST_NAME_BYTES} bytes.")


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)
