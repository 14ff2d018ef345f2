"""What a chat body carries: the last message of the person, text only, and what the client shows above it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ValidationError

from popagent_kit.errors import InvalidInputError
from popagent_kit.ids import is_client_id
from popagent_kit.invalid import explained
from popagent_proto.chat.turns import SEEN_MESSAGES, ChatRequest, UserMessage
from popagent_telemetry import redact_value

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


def seen_above(request: ChatRequest) -> list[str] | None:
    """Return the ids that the client shows above the new message, nearest first; None when the body does not tell.

    A body whose `messages` holds the new one alone does not: some clients send no more than that.
    """
    if "parent_id" in request.model_fields_set:
        return [] if request.parent_id is None else [request.parent_id]
    messages = request.messages or []
    users = [index for index, raw in enumerate(messages) if raw.get("role") == "user"]
    above = messages[: users[-1]] if users else []
    ids = [raw["id"] for raw in above[-SEEN_MESSAGES:] if isinstance(raw.get("id"), str) and is_client_id(raw["id"])]
    return ids[::-1] or None


def _parse(raw: dict[str, Any], location: tuple[str | int, ...]) -> UserMessage:
    # Here too, since chat does not know the key of the door.
    raw = {**raw, "parts": redact_value(raw["parts"])} if "parts" in raw else raw
    try:
        return UserMessage.model_validate(raw, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        field, sentence = explained(error.errors(include_url=False)[0], UserMessage, below=location)
        raise InvalidInputError(sentence, field=field) from error
