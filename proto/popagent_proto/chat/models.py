"""Which models can answer, and the connection to their server that a person sets in the page."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from popagent_kit.ids import Id
from popagent_proto.base import Command, Event, ListView, Query, Text, View
from popagent_proto.chat.secrets import Sealed

MOST_LISTED = 200
LONGEST_URL = 2_000

ModelId = Annotated[Text, Field(min_length=1, max_length=200)]
ConnectionSource = Literal["environment", "page", "embedded", "none"]
ConnectionClass = Literal["ok", "refused", "dns", "timeout", "tls", "unauthorized", "not-openai", "no-models", "failed"]


class ModelsView(View):
    """The catalogue; `known` is false while the endpoint does not answer, and any well-formed id is accepted then."""

    models: list[str]
    context_windows: dict[str, int] = Field(description="Tokens, by model; a model of unknown size is absent.")
    default_model: str | None
    known: bool = True
    note: str = Field(default="", description="Why the catalogue is unknown, and what to do, in words.")


class ListModels(Query[ModelsView]):
    """At most a minute old."""

    subject: ClassVar = "popagent.chat.qry.models-list.v1"


class EmbeddedModelView(View):
    """The model that comes with popagent."""

    available: bool = Field(description="Its server was started; it may still be loading.")
    model: str | None = Field(description="Its id once it has told it.")
    note: str = Field(description="What it is good for, or why it does not run, in words.")


class ModelConnectionView(View):
    """Where answers come from. The key itself is never told."""

    source: ConnectionSource = Field(
        description="What the next run uses: POPAGENT_MODEL_URL, what the page saved, the embedded model, nothing."
    )
    url: str | None = Field(
        description="Of the environment, else the one saved in the page, also while modelSource turns it off."
    )
    has_key: bool
    key_hint: str | None = Field(
        description="The last four characters; null without a key, for a short one, and while it is unreadable."
    )
    model: str | None = Field(description="Answers a chat that names none; null while none is known.")
    last_error: str | None = Field(description="Why no model would answer now, and what to do, in words.")
    embedded: EmbeddedModelView
    revision: int = Field(description="Rises with every change in the page; send it with PUT.")


class GetModelConnection(Query[ModelConnectionView]):
    """As the next run would find it."""

    subject: ClassVar = "popagent.chat.qry.models-connection.v1"


class PutModelConnection(Command[ModelConnectionView]):
    """Save a connection for the next run; 409 while the environment names one, or when the revision is old.

    An absent `sealed_key` keeps the stored key, which is refused when `url` leads to another server; null removes it.
    """

    subject: ClassVar = "popagent.chat.cmd.models-connection.v1"

    command_id: Id
    revision: int = Field(ge=0)
    url: Text = Field(min_length=1, max_length=LONGEST_URL)
    sealed_key: Sealed | None = None


class DropModelConnection(Command[ModelConnectionView]):
    """Forget the saved connection and its key; nothing happens when there is none."""

    subject: ClassVar = "popagent.chat.cmd.models-disconnect.v1"

    command_id: Id


class ConnectionTestView(View):
    """What a server answered to a list of its models and, when there is one, to a few words."""

    ok: bool
    class_: ConnectionClass = Field(
        validation_alias="class",
        serialization_alias="class",
        description="failed: it lists models, and the one that was asked does not answer.",
    )
    sentence: str = Field(description="What was found and what to do, in words.")
    models: list[str] = Field(description=f"The first {MOST_LISTED}.")
    model_count: int
    latency_ms: int | None = Field(description="To the first word, else to the list; null when nothing came.")
    answered_by: str | None = Field(description="The model that answered.")


class AskModelConnection(Query[ConnectionTestView]):
    """Ask a server for its models, then for a few words; within 14 s. Nothing is stored.

    Without a key the connection's own is sent, and only to its own server.
    """

    subject: ClassVar = "popagent.chat.qry.models-connection-test.v1"
    answer_within_s: ClassVar = 16.0

    url: Text = Field(min_length=1, max_length=LONGEST_URL)
    sealed_key: Sealed | None = None
    model: Text | None = Field(default=None, min_length=1, max_length=200)


class DetectedServer(View):
    """A model server that answers on this machine's loopback."""

    name: str = Field(description="What it most likely is.")
    url: str
    models: list[str] = Field(description=f"The first {MOST_LISTED}.")
    needs_key: bool = Field(description="It wants a key before it tells its models.")


class DetectedServers(ListView):
    """In the order of the table of well-known ports."""

    items: list[DetectedServer]


class DetectModelServers(Query[DetectedServers]):
    """Look at the well-known ports of loopback, once, within a second; nothing that is found is used."""

    subject: ClassVar = "popagent.chat.qry.models-detect.v1"

    own_ports: list[int] = Field(default_factory=list, max_length=64, description="Ports of ours, left alone.")


class ModelConnectionChanged(Event):
    """The next run uses this server; without `url` the embedded model, if there is one."""

    subject: ClassVar = "popagent.chat.evt.models-connection.v1"

    url: str | None
    has_key: bool
