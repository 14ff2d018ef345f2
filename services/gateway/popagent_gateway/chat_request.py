"""Which message a chat body carries: the last one of the person, text only; everything else is the server's."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from popagent_kit.errors import InvalidInputError
from popagent_kit.invalid import explained
from popagent_proto.chat.turns import ChatRequest, UserMessage

HISTORY_ROLES: Final = ("user", "assistant")


def message_of(request: ChatRequest) -> UserMessage | None:
    """Return the message that starts the turn; None when an answer is regenerated without naming its question.

    Raises:
        InvalidInputError: No message, two ways of sending one, a role that a client may not take, or a message of
            another shape; the field is named as the client sent it.
    """
    if request.message is not None and request.messages is not None:
        raise InvalidInputError("Send message or messages, not both.", field="message")
    if request.message is not None:
        return _parse(request.message, ("message",))
    last: tuple[int, dict[str, Any]] | None = None
    for index, raw in enumerate(request.messages or []):
        if raw.get("role") not in HISTORY_ROLES:
            field = f"messages.{index}.role"
            raise InvalidInputError(f"{field} must be user or assistant", field=field)
        if raw["role"] == "user":
            last = index, raw
    if last is not None:
        return _parse(last[1], ("messages", last[0]))
    if request.trigger == "submit-message":
        raise InvalidInputError("A message of the user is required.", field="message")
    return None


def _parse(raw: dict[str, Any], location: tuple[str | int, ...]) -> UserMessage:
    try:
        return UserMessage.model_validate(raw, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        field, sentence = explained(error.errors(include_url=False)[0], UserMessage, below=location)
        raise InvalidInputError(sentence, field=field) from error
