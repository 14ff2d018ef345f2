"""Which paths documentation may have: plain names in folders, that read as they are and stay below their workspace."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from popagent_docs_indexer.lookalikes import CONFUSABLE, NOT_A_SEPARATOR, skeleton
from popagent_kit.errors import InvalidInputError
from popagent_kit.text import excerpt

# Bytes of UTF-8: what file systems take, so that every page can be exported.
LONGEST_SEGMENT: Final = 255
LONGEST_PATH: Final = 1_024
DEEPEST: Final = 32
ENDINGS: Final = (".md", ".markdown")

Rule = Literal[
    "empty",
    "control-character",
    "absolute",
    "backslash",
    "empty-segment",
    "traversal",
    "hidden",
    "blank-at-an-end",
    "look-alike",
    "too-long",
    "too-deep",
    "markdown-only",
]

_DRIVE: Final = re.compile(r"[A-Za-z]:")
# An escape of what means something in a path; another percent sign is one.
_ESCAPED: Final = re.compile(r"%(?:25)*(?:2e|2f|5c|00)", re.IGNORECASE)
_JOINERS: Final = "\u200c\u200d"
_LETTERS: Final = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class DocPath:
    """A path that keeps every rule, in the composed normal form.

    Two paths with one `key` cannot be told apart by a reader, or by a file system that minds no case.
    """

    text: str
    key: str

    @property
    def name(self) -> str:
        """Return the last segment."""
        return self.text.rpartition("/")[2]

    @property
    def folder(self) -> DocPath | None:
        """Return the folder that it lies in; None for the root."""
        text, _, _ = self.text.rpartition("/")
        return DocPath(text, self.key.rpartition("/")[0]) if text else None

    def above(self) -> list[DocPath]:
        """Return the folders that it lies in, the outermost first."""
        found: list[DocPath] = []
        folder = self.folder
        while folder is not None:
            found.append(folder)
            folder = folder.folder
        return found[::-1]

    def is_in(self, folder: DocPath) -> bool:
        """Tell whether it lies somewhere below `folder`."""
        return self.key.startswith(folder.key + "/")


def page_path(text: str, *, field: str = "path") -> DocPath:
    """Return the path of a page.

    Raises:
        InvalidInputError: It breaks a rule, which `rule` beside the error and the sentence name.
    """
    path = folder_path(text, field=field)
    if not is_markdown(path.name):
        _refuse("markdown-only", "A page is a Markdown file: its name ends in .md or .markdown.", text, field)
    return path


def folder_path(text: str, *, field: str = "path") -> DocPath:
    """Return the path of a folder; raises as `page_path` does."""
    composed = unicodedata.normalize("NFC", text)
    refused = _refusal_of_whole(composed)
    if refused is None:
        refused = next(filter(None, map(_refusal_of_segment, composed.split("/"))), None)
    if refused is not None:
        _refuse(*refused, text, field)
    return DocPath(composed, "/".join(map(key_of, composed.split("/"))))


def is_markdown(name: str) -> bool:
    """Tell whether a file of this name is a page."""
    return any(name.lower().endswith(ending) and len(name) > len(ending) for ending in ENDINGS)


def key_of(segment: str) -> str:
    """Return what two names that read alike have in common."""
    visible = "".join(each for each in segment if each not in _JOINERS and not "\ufe00" <= each <= "\ufe0f")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())
    return skeleton(folded).replace("/", "\u2044")


def _refusal_of_whole(path: str) -> tuple[Rule, str] | None:
    if not path.strip():
        return "empty", "A path is missing. “guide/first-steps.md” is one."
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") and each not in _JOINERS for each in path):
        return "control-character", "A path has no control characters, and none that cannot be seen."
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        return "absolute", "A path is relative to the workspace's documentation: it begins with no slash and no drive."
    if "\\" in path:
        return "backslash", "Folders are separated by /, not by a backslash."
    if len(path.encode()) > LONGEST_PATH:
        return "too-long", f"A path has at most {LONGEST_PATH:,} bytes in UTF-8; this one has {len(path.encode()):,}."
    if path.count("/") >= DEEPEST:
        return "too-deep", f"A path has at most {DEEPEST} names; this one has {path.count('/') + 1}."
    return None


def _refusal_of_segment(segment: str) -> tuple[Rule, str] | None:
    visible = segment.strip(_JOINERS)
    if not visible:
        return "empty-segment", "A path has no empty name: one slash separates two names, and none ends it."
    if visible in (".", ".."):
        return "traversal", "A path goes down only: it has no “.” and no “..”."
    if visible.startswith("."):
        return "hidden", "A name does not begin with a dot: that would hide it."
    if unicodedata.normalize("NFKC", visible).startswith("."):
        return "look-alike", f"“{visible[0]}” (U+{ord(visible[0]):04X}) looks like a dot at the beginning of a name."
    if segment != segment.strip() or segment.endswith("."):
        return "blank-at-an-end", "A name does not begin or end with a blank, and does not end with a dot."
    if like := _looks_like_another(segment):
        return "look-alike", like
    if len(segment.encode()) > LONGEST_SEGMENT:
        return "too-long", f"A name has at most {LONGEST_SEGMENT} bytes in UTF-8; one has {len(segment.encode()):,}."
    return None


def _looks_like_another(segment: str) -> str | None:
    if _ESCAPED.search(segment):
        return "A name has no escaped dot, slash or backslash such as %2e; write the name as it is read."
    if deceiving := next((each for each in segment if each in NOT_A_SEPARATOR), None):
        return f"“{deceiving}” (U+{ord(deceiving):04X}) looks like a slash, a backslash or a dot, and is none."
    for word in _LETTERS.findall(segment):
        foreign = next((each for each in word if each in CONFUSABLE), None)
        if foreign is not None and any(_is_latin(each) for each in word):
            return (
                f"“{excerpt(word, 60)}” mixes alphabets: its “{foreign}” (U+{ord(foreign):04X}) looks like "
                f"“{CONFUSABLE[foreign]}”, and is none."
            )
    return None


def _is_latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith("LATIN ")


def _refuse(rule: Rule, sentence: str, text: str, field: str) -> NoReturn:
    shown = "".join(each if each.isprintable() else "�" for each in excerpt(text, 200))
    raise InvalidInputError(sentence, field=field, extra={"rule": rule, "given": shown})
