"""A skill as a folder: SKILL.md, and the texts below references/; read and written without following any link."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import ValidationError

from popagent_cli import skill_file
from popagent_cli.errors import CliError
from popagent_cli.safe_text import one_safe_line
from popagent_cli.skill_file import FILE_NAME, LONGEST_FRONT_MATTER, SkillFileError
from popagent_proto.chat.skills import (
    LONGEST_REFERENCE,
    LONGEST_SKILL_INSTRUCTIONS,
    MOST_REFERENCES,
    SkillFields,
)

REFERENCES: Final = "references"
# What file managers leave behind.
LITTER: Final = frozenset({".DS_Store", "Thumbs.db", "desktop.ini"})
# UTF-8 takes up to four bytes a character.
SKILL_FILE_BYTES: Final = 4 * (LONGEST_FRONT_MATTER + LONGEST_SKILL_INSTRUCTIONS)
REFERENCE_BYTES: Final = 4 * LONGEST_REFERENCE
MOST_ENTRIES: Final = 1_000
DEEPEST: Final = 16
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not wait for its writer.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class SkillTree:
    """A folder's skill; `left_out` is what lies there or stands in its front matter, and has no place in a skill."""

    fields: SkillFields
    left_out: list[str]


def read_tree(folder: Path) -> SkillTree:
    """Return the skill that lies in `folder`, whose name it has.

    Raises:
        CliError: It is no skill, or one that could not be stored; the sentence names the place.
    """
    try:
        fd = os.open(folder.resolve(strict=True), _FOLDER)
    except OSError as error:
        raise CliError(f"{_shown(folder)} cannot be read: {os.strerror(error.errno or 0)}.") from error
    try:
        return _read(fd, folder)
    except (SkillFileError, OSError) as error:
        reason = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise CliError(f"{_shown(folder)}: {one_safe_line(reason, 400)}.") from error
    finally:
        os.close(fd)


def write_tree(skill: SkillFields, folder: Path, *, overwrite: bool) -> Literal["written", "replaced", "unchanged"]:
    """Write the skill into `folder`/<name>; what lies there beside SKILL.md and references/ is left alone.

    Raises:
        CliError: Something else lies there and may not be replaced, or it cannot be written.
    """
    target = folder / skill.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(target):
            _make(target, skill)
            return "written"
        if target.is_symlink() or not target.is_dir():
            raise CliError(f"{_shown(target)} is there already, and no folder.")
        if _holds(target, skill):
            return "unchanged"
        if not overwrite:
            raise CliError(
                f"{_shown(target)} is there already, and holds something else. --overwrite replaces its {FILE_NAME} "
                f"and {REFERENCES}/."
            )
        _replace(target, skill)
    except OSError as error:
        raise CliError(f"{_shown(target)} cannot be written: {os.strerror(error.errno or 0)}.") from error
    return "replaced"


def _read(fd: int, folder: Path) -> SkillTree:
    names = sorted(_names(fd))
    if FILE_NAME not in names:
        raise SkillFileError(_why_no_skill(fd, names))
    found = skill_file.parse(_text(fd, FILE_NAME, FILE_NAME, SKILL_FILE_BYTES))
    left_out = [f"{name} (front matter)" for name in found.unknown]
    left_out += [name for name in names if name not in {FILE_NAME, REFERENCES, *LITTER}]
    texts = dict(_references(fd)) if REFERENCES in names else {}
    fields = checked({**found.fields, **({"references": texts} if texts else {})})
    own_name = folder.resolve().name
    if fields.name != own_name:
        raise SkillFileError(
            f"{FILE_NAME} calls it {fields.name!r}, and the folder {own_name!r}; both must be the same"
        )
    return SkillTree(fields, left_out)


def checked(fields: dict[str, Any]) -> SkillFields:
    """Return the fields as the contract has them.

    Raises:
        SkillFileError: One is not accepted.
    """
    try:
        return SkillFields.model_validate(fields, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"] if part != "[key]")
        raise SkillFileError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from error


def _why_no_skill(fd: int, names: list[str]) -> str:
    same = [name for name in names if name.casefold() == FILE_NAME.casefold()]
    if same:
        return f"{same[0]} must be called {FILE_NAME}"
    for name in names:
        with contextlib.suppress(OSError):
            if stat.S_ISREG(os.stat(f"{name}/{FILE_NAME}", dir_fd=fd).st_mode):
                return f"there is no {FILE_NAME}, but one in {name}; give the folders of the skills themselves"
    return f"there is no {FILE_NAME}"


def _names(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        names = [entry.name for _, entry in zip(range(MOST_ENTRIES + 1), entries, strict=False)]
    if len(names) > MOST_ENTRIES:
        raise SkillFileError(f"it holds more than {MOST_ENTRIES:,} files")
    return names


def _references(fd: int) -> Iterator[tuple[str, str]]:
    """Yield path below references/ and text of each file there."""
    top = _opened(fd, REFERENCES, REFERENCES, _FOLDER)
    count = 0
    try:
        for path, above, name in _files(top, "", 0):
            count += 1
            if count > MOST_REFERENCES:
                raise SkillFileError(f"{REFERENCES}/ holds more than {MOST_REFERENCES} files")
            yield path, _text(above, name, f"{REFERENCES}/{path}", REFERENCE_BYTES)
    finally:
        os.close(top)


def _files(fd: int, prefix: str, depth: int) -> Iterator[tuple[str, int, str]]:
    if depth > DEEPEST:
        raise SkillFileError(f"{REFERENCES}/{prefix} is nested too deep")
    for name in sorted(set(_names(fd)) - LITTER):
        path = f"{prefix}{name}"
        kind = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        if not stat.S_ISDIR(kind):
            yield path, fd, name
            continue
        inner = _opened(fd, name, f"{REFERENCES}/{path}", _FOLDER)
        try:
            yield from _files(inner, f"{path}/", depth + 1)
        finally:
            os.close(inner)


def _opened(fd: int, name: str, shown: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=fd)
    except OSError as error:
        if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            raise SkillFileError(f"{shown} is a link; links are not followed") from error
        raise SkillFileError(f"{shown} cannot be read: {os.strerror(error.errno or 0)}") from error


def _text(fd: int, name: str, shown: str, most: int) -> str:
    file = _opened(fd, name, shown, _FILE)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise SkillFileError(f"{shown} is no file")
        with open(file, "rb", closefd=False) as readable:
            data = readable.read(most + 1)
    finally:
        os.close(file)
    if len(data) > most:
        raise SkillFileError(f"{shown} is larger than {most:,} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SkillFileError(f"{shown} is not text in UTF-8") from error


def _holds(target: Path, skill: SkillFields) -> bool:
    try:
        there = read_tree(target).fields
    except CliError:
        return False
    ours = {"provenance", "enabled"}
    return there.model_dump(exclude=ours) == skill.model_dump(exclude=ours)


def _make(target: Path, skill: SkillFields) -> None:
    """Write beside it and rename, so that nobody finds half of it."""
    beside = target.with_name(f".{skill.name}-{secrets.token_hex(4)}")
    beside.mkdir()
    try:
        _write(beside / FILE_NAME, skill_file.render(skill))
        if skill.references:
            _write_references(beside / REFERENCES, skill)
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside)
        raise


def _replace(target: Path, skill: SkillFields) -> None:
    mark = secrets.token_hex(4)
    new_file, new_texts, old_texts = (target / f".{name}-{mark}" for name in ("skill", "references", "old"))
    references = target / REFERENCES
    try:
        _write(new_file, skill_file.render(skill))
        if skill.references:
            _write_references(new_texts, skill)
        if os.path.lexists(references):
            references.rename(old_texts)
        if skill.references:
            new_texts.rename(references)
        new_file.replace(target / FILE_NAME)
    finally:
        for left in (new_file, new_texts, old_texts):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink(missing_ok=True)


def _write_references(folder: Path, skill: SkillFields) -> None:
    for path, text in sorted(skill.references.items()):
        # The contract has refused every path that leads out of the folder.
        file = folder.joinpath(*path.split("/"))
        file.parent.mkdir(parents=True, exist_ok=True)
        _write(file, text)


def _write(file: Path, text: str) -> None:
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(fd, "wb") as out:
        out.write(text.encode())


def _shown(path: Path) -> str:
    return one_safe_line(str(path), 4_096)
