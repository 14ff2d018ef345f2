"""What every contract is made of: camelCase wire models, and messages that know their subject and reply."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Generic, Self, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from popagent_kit import json
from popagent_kit.clock import now, wire_time
from popagent_kit.ids import Id, new_id

Reply = TypeVar("Reply", bound=BaseModel)
# A request whose class declares nothing else is given up by its owner after this time.
ANSWER_WITHIN_S: Final = 8.0


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("must not contain the NUL character")
    return text


# PostgreSQL text cannot hold U+0000 and no page can show it; refused at the door (hostile input 20).
Text = Annotated[str, AfterValidator(_without_nul)]


# A name that people read in lists and terminals: nothing in it may move a line, or hide and turn what stands beside it.
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def not_blank(text: str) -> str:
    """Return text that says something; raises ValueError for blanks alone."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def _visible_line(text: str) -> str:
    if _NOT_IN_A_LINE.search(not_blank(text)):
        raise ValueError("must be one line, without control characters")
    return text


Line = Annotated[Text, AfterValidator(_visible_line)]
Moment = Annotated[datetime, PlainSerializer(wire_time, return_type=str, when_used="json")]


class Wire(BaseModel):
    """A shape on the wire: camelCase names, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, protected_namespaces=()
    )

    def wire(self) -> dict[str, Any]:
        """Return the JSON-ready form with camelCase names."""
        return self.model_dump(mode="json", by_alias=True)

    def encode(self) -> bytes:
        """Return the JSON bytes."""
        return json.dumps(self.wire())

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Parse JSON bytes.

        Raises:
            MalformedJsonError: Not JSON.
            pydantic.ValidationError: Another shape.
        """
        return cls.model_validate(json.loads(data))


class View(Wire):
    """What a read answers.

    A reader ignores fields it does not know, so that a newer owner can add some.
    """

    model_config = ConfigDict(extra="ignore")


class Sparse(View):
    """A shape whose fields are absent where they are not known, never null: what AI SDK messages carry."""

    model_config = ConfigDict(json_schema_extra={"x-sparse": True})


class Message(Wire):
    """Something sent to `subject`; with `addressed_by` the subject ends in that field's value."""

    subject: ClassVar[str] = ""
    addressed_by: ClassVar[str | None] = None
    registry: ClassVar[dict[str, type[Message]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if not cls.subject or "subject" not in cls.__dict__:
            return
        owner, kind, name, version = cls.subject_parts()
        if kind not in {"cmd", "qry", "evt"} or not (owner and name and version.startswith("v")):
            raise TypeError(f"{cls.__name__}: bad subject {cls.subject!r}")
        known = Message.registry.setdefault(cls.subject, cls)
        if known is not cls and known.__qualname__ != cls.__qualname__:
            raise TypeError(f"{cls.subject} belongs to {known.__name__}, not to {cls.__name__}")

    @classmethod
    def subject_parts(cls) -> tuple[str, str, str, str]:
        """Return (owner, kind, slice-verb, version) of the class's subject."""
        prefix, owner, kind, name, version = cls.subject.split(".")
        if prefix != "popagent":
            raise TypeError(f"{cls.__name__}: subjects start with popagent")
        return owner, kind, name, version

    def to_subject(self) -> str:
        """Return the subject this message is sent to."""
        if self.addressed_by is None:
            return self.subject
        return f"{self.subject}.{getattr(self, self.addressed_by)}"


class Request(Message, Generic[Reply]):
    """A message that is answered, within `answer_within_s`; see Command and Query."""

    answer_within_s: ClassVar[float] = ANSWER_WITHIN_S

    def wire(self) -> dict[str, Any]:
        """Return the JSON-ready form of what was set; the owner has the same defaults, and absent is not null."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)

    @classmethod
    def reply_type(cls) -> type[BaseModel]:
        """Return the class of the answer."""
        for base in cls.__mro__:
            arguments = getattr(base, "__pydantic_generic_metadata__", {}).get("args", ())
            if arguments:
                return cast("type[BaseModel]", arguments[0])
        raise TypeError(f"{cls.__name__} names no reply")


class Command(Request[Reply], Generic[Reply]):
    """Ask the owner to change something; carried out once for one `command_id` where the class has such a field."""


class Query(Request[Reply], Generic[Reply]):
    """Ask the owner for a view; changes nothing."""


class Event(Message):
    """A fact, told after its transaction committed. Consumers ignore a version older than one they have seen."""

    event_id: Id = Field(default_factory=new_id, description="Also the Nats-Msg-Id.")
    aggregate_id: Id = Field(description="What changed; versions count within it.")
    version: int = Field(ge=0, description="Rises with every change of the aggregate.")
    at: Moment = Field(default_factory=now)


class FailureBody(Wire):
    """An error as data; the class is found again by `code`."""

    code: str
    message: str
    field: str | None = None
    retry_after_s: float | None = None
    extra: dict[str, Any] = Field(default_factory=dict)


class Failure(Wire):
    """The reply to a request that was refused or failed."""

    failure: FailureBody


class Empty(View):
    """An answer with nothing to say beyond success."""


class ListView(View):
    """Base of every list: a page of items and the cursor of the next page, null at the end."""

    next_cursor: str | None = None
