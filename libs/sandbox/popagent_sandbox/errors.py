"""Refusals of the sandbox; each message is read by a model or a person and says what would be accepted."""

from __future__ import annotations

from popagent_kit.errors import InvalidInputError, NotFoundError


class PathRefusedError(InvalidInputError):
    """This path may not be used here."""

    code = "path_refused"


class PathMissingError(NotFoundError):
    """There is nothing at this path."""

    code = "path_missing"


class WrongKindError(InvalidInputError):
    """There is something else at this path than was asked for."""

    code = "path_wrong_kind"


class UnreadableFileError(InvalidInputError):
    """This file holds no text that can be shown."""

    code = "file_unreadable"
