"""Write and edit text files of a workspace; who changes a file has read it as it is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from popagent_sandbox.contained import ContainedFolder, Opened, Place
from popagent_sandbox.editing import edited
from popagent_sandbox.errors import (
    ContentRefusedError,
    NotReadError,
    PathMissingError,
    StaleReadError,
    UnreadableFileError,
)
from popagent_sandbox.ledger import ReadLedger
from popagent_sandbox.making import place_for_new
from popagent_sandbox.paths import shown
from popagent_sandbox.reading import LARGEST_FILE_BYTES, is_binary, read_bytes
from popagent_sandbox.replacing import Stopped, created, locked, replaced, told
from popagent_telemetry import REDACTED, marks_in, redact

_BOM: Final = b"\xef\xbb\xbf"


def never() -> bool:
    """Say that a call was not ended from outside."""
    return False


@dataclass(frozen=True)
class Change:
    """What a file was and is; `before` is None for a new one. Both are the same when there was nothing to change."""

    path: str
    before: bytes | None
    after: bytes


def write_text(folder: ContainedFolder, path: str, text: str, reads: ReadLedger, *, stopped: Stopped = never) -> Change:
    """Make a file, or put `text` in place of all of one that the run has read in full.

    Line endings, byte order mark and a missing line feed at the end stay as the file has them. `stopped` is asked
    before anything changes for good.

    Raises:
        NotReadError: It exists and was not read, or only in part, or it is another by now (StaleReadError).
        ContentRefusedError: The text is no text, too large, or has lost what was redacted when it was read.
    """
    content = _encoded(text)
    with place_for_new(folder, path) as place:
        if place.status() is None:
            return _created(place, content, reads, stopped)

        def whole(before: bytes) -> bytes:
            if not reads.knows_whole(place.path):
                raise NotReadError(
                    f"You have read only a part of {shown(place.path)}, and write replaces all of it. "
                    "Read the rest, or use edit."
                )
            return _kept(before, content)

        return _changed(folder, place, reads, whole, stopped)


def edit_text(
    folder: ContainedFolder,
    path: str,
    old: str,
    new: str,
    reads: ReadLedger,
    *,
    everywhere: bool = False,
    stopped: Stopped = never,
) -> Change:
    """Replace `old`, which occurs once or is to be replaced `everywhere`, in a file that the run has read.

    Raises:
        NotReadError: It was not read, or it is another by now (StaleReadError).
        TextNotFoundError: It does not occur, or too often.
        ContentRefusedError: What would come out is no text, too large, or has lost what was redacted when it was read.
        PathMissingError: There is no such file.
    """
    _encoded(old + new)
    with folder.place(path) as place, told(place.path):
        return _changed(folder, place, reads, lambda before: edited(before, old, new, everywhere=everywhere), stopped)


def current(reads: ReadLedger, path: str, content: bytes) -> None:
    """Raise NotReadError unless the run has read this very content."""
    known = reads.sha256_of(path)
    if known is None:
        raise NotReadError(f"Read {shown(path)} first; a file that was not read cannot be changed.")
    if known != _hash(content):
        raise StaleReadError(f"{shown(path)} has changed since you read it. Read it again before you change it.")


def still_as_read(reads: ReadLedger, opened: Opened) -> None:
    """Raise StaleReadError when the run has read this file and it is another by now; what was not read may be so."""
    if reads.sha256_of(opened.path) is not None:
        current(reads, opened.path, read_bytes(opened, LARGEST_FILE_BYTES))


def _created(place: Place, content: bytes, reads: ReadLedger, stopped: Stopped) -> Change:
    if reads.sha256_of(place.path) is not None:
        reads.forget(place.path)
        raise StaleReadError(f"{shown(place.path)} was deleted since you read it. Write it again to make it anew.")
    with created(place, content, stopped):
        reads.wrote(place.path, _hash(content), whole=True)
    return Change(place.path, None, content)


def _changed(
    folder: ContainedFolder,
    place: Place,
    reads: ReadLedger,
    change: Callable[[bytes], bytes],
    stopped: Stopped,
) -> Change:
    try:
        with locked(folder, place, stopped) as opened:
            before = read_bytes(opened, LARGEST_FILE_BYTES)
            if is_binary(before):
                raise UnreadableFileError(f"{shown(place.path)} is a binary file; only text can be changed.")
            current(reads, place.path, before)
            after = change(before)
            if after == before:
                return Change(place.path, before, after)
            _refuse_content(after, place.path)
            _refuse_lost_secrets(before, after)
            with replaced(place, opened.status, after, stopped):
                # Noted under the lock: the next change of this run waits for it and must find its own hash.
                reads.wrote(place.path, _hash(after), whole=reads.knows_whole(place.path))
            return Change(place.path, before, after)
    except PathMissingError:
        reads.forget(place.path)
        raise


def _encoded(text: str) -> bytes:
    try:
        content = text.encode()
    except UnicodeEncodeError as error:
        raise ContentRefusedError("The text holds characters that cannot be written as UTF-8.") from error
    _refuse_content(content, "the file")
    return content


def _refuse_content(content: bytes, name: str) -> None:
    if b"\0" in content:
        raise ContentRefusedError("The text holds a NUL character; only text can be written.")
    if len(content) > LARGEST_FILE_BYTES:
        raise ContentRefusedError(f"{name} would have {len(content)} bytes; {LARGEST_FILE_BYTES} are the most.")


def _kept(before: bytes, content: bytes) -> bytes:
    """Give a whole new content what a read does not show: line endings, byte order mark, how the file ends."""
    if b"\r\n" in before and before.count(b"\r\n") == before.count(b"\n"):
        content = content.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    if before.startswith(_BOM) and not content.startswith(_BOM):
        content = _BOM + content
    if before and content:
        ending = b"\r\n" if content.endswith(b"\r\n") or before.endswith(b"\r\n") else b"\n"
        if not before.endswith(b"\n"):
            return content.removesuffix(ending)
        if not content.endswith(b"\n"):
            return content + ending
    return content


def _refuse_lost_secrets(before: bytes, after: bytes) -> None:
    """A model that copies a file as it was shown would write our mark over a secret that it never saw."""
    old = before.decode("utf-8", "replace")
    if marks_in(after.decode("utf-8", "replace")) <= marks_in(old):
        return
    if marks_in(redact(old)) > marks_in(old):
        raise ContentRefusedError(
            f"{REDACTED} stands for a secret that you are not shown; writing it would destroy the secret. "
            "Use edit, and leave that line alone."
        )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
