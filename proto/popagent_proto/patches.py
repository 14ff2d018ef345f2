"""What a patch says: only the fields that the client sent count."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from popagent_kit.errors import InvalidInputError
from popagent_proto.base import Wire


def given_fields(patch: Wire, *, nullable: Collection[str]) -> dict[str, Any]:
    """Return the fields that the client sent, by their Python names, without the revision.

    Raises:
        InvalidInputError: A null where only a value is accepted.
    """
    sent = patch.model_dump(exclude_unset=True, exclude={"revision"})
    for name, value in sent.items():
        if value is None and name not in nullable:
            field = wire_name(type(patch), name)
            raise InvalidInputError(f"{field} cannot be null.", field=field)
    return sent


def wire_name(shape: type[Wire], name: str) -> str:
    """Return what a field is called on the wire."""
    return shape.model_fields[name].alias or name
