"""Refusals of the sandbox; each message is read by a model or a person and says what would be accepted."""

from __future__ import annotations

from popagent_kit.errors import ConflictError, InvalidInputError, NotFoundError


class PathRefusedError(InvalidInputError):
    """This path may not be used here."""

    code = "path_refused"


class PathProtectedError(PathRefusedError):
    """This path may be read and never changed."""

    code = "path_protected"


class PathMissingError(NotFoundError):
    """There is nothing at this path."""

    code = "path_missing"


class PathTakenError(ConflictError):
    """There is something at this path already."""

    code = "path_taken"


class WrongKindError(InvalidInputError):
    """There is something else at this path than was asked for."""

    code = "path_wrong_kind"


class UnreadableFileError(InvalidInputError):
    """This file holds no text that can be shown."""

    code = "file_unreadable"


class NotReadError(ConflictError):
    """A file is changed only by who has read it as it is now."""

    code = "file_not_read"


class StaleReadError(NotReadError):
    """The file is not any more what was read."""

    code = "file_stale"


class FileBusyError(ConflictError):
    """Somebody else is changing this file."""

    code = "file_busy"
    retryable = True


class TextNotFoundError(InvalidInputError):
    """The text to be replaced is not in the file, or is there more than once."""

    code = "text_not_found"


class ContentRefusedError(InvalidInputError):
    """This text may not be written into this file."""

    code = "content_refused"


class WriteFailedError(ConflictError):
    """The system did not carry out the change."""

    code = "write_failed"
