"""What is in an upload: Markdown files and folders, and what is left out and why. Nothing is written to a disk."""

from __future__ import annotations

import io
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from popagent_docs_indexer.markdown.front_matter import front_matter
from popagent_docs_indexer.paths import is_markdown
from popagent_kit.errors import InvalidInputError
from popagent_kit.text import one_line
from popagent_proto.docs_indexer.imports import MARKDOWN
from popagent_proto.docs_indexer.pages import LONGEST_PAGE

MOST_MEMBERS: Final = 20_000
# Bytes: no page has more in UTF-8, and what all pages of an upload have together.
LARGEST: Final = 4 * LONGEST_PAGE
LARGEST_TOTAL: Final = 512 * 1024 * 1024

_YES: Final = frozenset({"true", "yes", "1", "on"})
_SEPARATOR: Final = re.compile(r"[/\\]")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True)
class File:
    """A Markdown file; `note_id` is what its front matter calls its source."""

    path: str
    text: str
    note_id: str | None


@dataclass(frozen=True)
class Folder:
    """A folder that the upload names."""

    path: str


@dataclass(frozen=True)
class LeftOut:
    """What is not imported."""

    path: str
    reason: str


def members(data: bytes, name: str, media_type: str) -> Iterator[File | Folder | LeftOut]:
    """Yield what is in an upload; a whole zip is looked through before the first.

    Raises:
        InvalidInputError: It is no zip, leads out of itself, has links or secrets, or is far too large.
    """
    if media_type == MARKDOWN:
        yield _file(name, data)
        return
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise InvalidInputError(f"This is no zip: {one_line(str(error), 100)}.", field="file") from error
    with archive:
        listed = archive.infolist()
        _refuse_hostile(listed)
        for info in listed:
            yield _member(archive, info)


def count(data: bytes, media_type: str) -> int:
    """Return about how many members there are, at least one."""
    if media_type == MARKDOWN:
        return 1
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return max(1, len(archive.infolist()))
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return 1


def _refuse_hostile(listed: list[zipfile.ZipInfo]) -> None:
    if len(listed) > MOST_MEMBERS:
        raise InvalidInputError(f"The zip has more than {MOST_MEMBERS:,} members.", field="file")
    if sum(info.file_size for info in listed if is_markdown(info.filename)) > LARGEST_TOTAL:
        raise InvalidInputError("The zip holds more text than can be imported at once.", field="file")
    for info in listed:
        name, shown = info.orig_filename, one_line(ascii(info.orig_filename)[1:-1], 120)
        parts = _SEPARATOR.split(name)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if "\x00" in name or parts[0] == "" or _DRIVE.match(name) or ".." in parts:
            raise InvalidInputError(f"“{shown}” leads out of the zip. Nothing of it was imported.", field="file")
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise InvalidInputError(f"“{shown}” is a link or a device. Nothing of it was imported.", field="file")
        if info.flag_bits & 1:
            raise InvalidInputError("The zip is encrypted. Nothing of it was imported.", field="file")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> File | Folder | LeftOut:
    path = info.filename.replace("\\", "/")
    parts = path.rstrip("/").split("/")
    if any(part.startswith(".") for part in parts) or parts[0] == "__MACOSX":
        return LeftOut(path, "It is hidden.")
    if info.is_dir():
        return Folder(path.rstrip("/"))
    if not is_markdown(parts[-1]):
        return LeftOut(path, "It is no Markdown file.")
    try:
        with archive.open(info) as opened:
            data = opened.read(LARGEST + 1)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, OSError, RuntimeError) as error:
        return LeftOut(path, f"It cannot be read: {one_line(str(error), 100)}.")
    return _file(path, data)


def _file(path: str, data: bytes) -> File | LeftOut:
    if len(data) > LARGEST:
        return LeftOut(path, f"It has more than {LONGEST_PAGE:,} characters.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return LeftOut(path, "It is no text in UTF-8.")
    if len(text) > LONGEST_PAGE:
        return LeftOut(path, f"It has more than {LONGEST_PAGE:,} characters.")
    if "\x00" in text:
        return LeftOut(path, "It has a NUL character.")
    fields = {name.lower(): value for name, value in front_matter(text).items() if isinstance(value, str)}
    archived = fields.get("archived", "").lower() in _YES or fields.get("trashed", "").lower() in _YES
    if archived or fields.get("status", "").lower() == "archived":
        return LeftOut(path, "It is archived.")
    note_id = fields.get("source_note_id", "").strip()
    return File(path, text, one_line(note_id, 200) if note_id else None)
