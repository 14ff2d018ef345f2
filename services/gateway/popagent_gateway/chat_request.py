"""Which message a chat body carries: the last one of the person, text only; everything else is the server's."""

from __future__ import annotations

from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from popagent_kit.errors import InvalidInputError
from popagent_proto.chat.turns import ChatRequest, UserMessage

HISTORY_ROLES: Final = ("user", "assistant")


def message_of(request: ChatRequest) -> UserMessage | None:
    """Return the message that starts the turn; None when an answer is regenerated without naming its question.

    Raises:
        InvalidInputError: No message, two ways of sending one, or a role that a client may not take.
        RequestValidationError: The message has another shape; the field is named as the client sent it.
    """
    if request.message is not None and request.messages is not None:
        raise InvalidInputError("message: send message or messages, not both", field="message")
    if request.message is not None:
        return _parse(request.message, ("message",))
    last: tuple[int, dict[str, Any]] | None = None
    for index, raw in enumerate(request.messages or []):
        if raw.get("role") not in HISTORY_ROLES:
            field = f"messages.{index}.role"
            raise InvalidInputError(f"{field}: only user and assistant messages are accepted", field=field)
        if raw["role"] == "user":
            last = index, raw
    if last is not None:
        return _parse(last[1], ("messages", last[0]))
    if request.trigger == "submit-message":
        raise InvalidInputError("message: a message of the user is required", field="message")
    return None


def _parse(raw: dict[str, Any], location: tuple[str | int, ...]) -> UserMessage:
    try:
        return UserMessage.model_validate(raw)
    except ValidationError as error:
        raise RequestValidationError(
            [{**detail, "loc": ("body", *location, *detail["loc"])} for detail in error.errors(include_url=False)]
        ) from error
