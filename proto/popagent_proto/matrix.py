"""Who owns what and who may talk to whom: the one table from which roles, NATS users and tests are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Cluster = Literal["application", "observability"]

MIB: Final = 1024 * 1024
DAY_S: Final = 86_400
MAX_PAYLOAD: Final = 8 * MIB


@dataclass(frozen=True)
class ServiceRow:
    """One service: whom it asks, whose events it hears, which server keeps its schema."""

    name: str
    summary: str
    asks: tuple[str, ...] = ()
    hears: tuple[str, ...] = ()
    cluster: Cluster = "application"
    writes_live: bool = False
    blobs: bool = False  # puts and gets what is too big for a message
    watches: bool = False  # reads every live stream, the event stream and transcripts that grow, as the door does

    @property
    def package(self) -> str:
        """Return the import package."""
        return "popagent_" + self.schema

    @property
    def schema(self) -> str:
        """Return the PostgreSQL schema (the role is `popagent_<schema>`)."""
        return self.name.replace("-", "_")

    @property
    def role(self) -> str:
        """Return the PostgreSQL role, which is also the NATS user."""
        return f"popagent_{self.schema}"

    @property
    def env_prefix(self) -> str:
        """Return the prefix of this service's variables, `POPAGENT_TASK_RUNNER` for example."""
        return f"POPAGENT_{self.schema.upper()}"

    @property
    def inbox_prefix(self) -> str:
        """Return the prefix of the reply subjects, one token that no neighbour may subscribe to."""
        return f"_INBOX_{self.schema}"


SERVICES: Final[tuple[ServiceRow, ...]] = (
    ServiceRow(
        "gateway",
        "the door: HTTP, key, streams, the web UI",
        asks=("chat", "task-runner", "scheduler", "evolution-worker", "docs-indexer", "observability"),
        watches=True,
        blobs=True,
    ),
    ServiceRow(
        "chat",
        "who the agents are, what they may do, what was said, remembered and learned",
        asks=("docs-indexer", "task-runner", "scheduler"),
        hears=("task-runner",),
        writes_live=True,
        blobs=True,
    ),
    ServiceRow(
        "task-runner",
        "work that outlives a request",
        asks=("chat", "docs-indexer", "scheduler"),
        writes_live=True,
        blobs=True,
    ),
    ServiceRow("scheduler", "when work starts", asks=("task-runner", "chat")),
    ServiceRow("evolution-worker", "what may be learned from work", asks=("chat", "task-runner")),
    ServiceRow("docs-indexer", "what is written: documentation and code", asks=("chat",), blobs=True),
    ServiceRow(
        "observability",
        "what happened",
        hears=("gateway", "chat", "task-runner", "scheduler", "evolution-worker", "docs-indexer"),
        cluster="observability",
    ),
)
BY_NAME: Final = {row.name: row for row in SERVICES}


@dataclass(frozen=True)
class StreamRow:
    """One JetStream stream; sizes in bytes, ages in seconds."""

    name: str
    subjects: tuple[str, ...]
    max_age_s: int
    max_bytes: int
    duplicate_window_s: int = 120


@dataclass(frozen=True)
class ConsumerRow:
    """One durable pull consumer, made by the migrator alone; services only bind to it."""

    name: str
    stream: str
    owner: str
    filter_subjects: tuple[str, ...]
    ack_wait_s: float = 30
    max_deliver: int = 5
    max_ack_pending: int = 256


EVENTS: Final = "EVENTS"
TELEMETRY: Final = "TELEMETRY"
DLQ: Final = "DLQ"
BLOBS: Final = "blobs"
BLOBS_MAX_AGE_S: Final = 3_600
BLOBS_MAX_BYTES: Final = 1024 * MIB


def live_stream(owner: str) -> str:
    """Return the name of the stream that keeps the live frames of `owner`; each owner has its own."""
    return "LIVE_" + BY_NAME[owner].schema.upper()


def live_subject(owner: str, slice_: str, instance: str) -> str:
    """Return the subject of the live frames of one turn or task."""
    return f"popagent.{owner}.live.{slice_}-frames.v1.{instance}"


def wake_subject(owner: str, slice_: str) -> str:
    """Return the core subject that says: look at your rows now."""
    return f"popagent.{owner}.wake.{slice_}.v1"


def transcript_subject(task_id: str) -> str:
    """Return the core subject that says to who follows a task: its transcript has more."""
    return f"{wake_subject('task-runner', 'transcripts')}.{task_id}"


def telemetry_subject(service: str) -> str:
    """Return the subject of this service's batches of spans and logs."""
    return f"popagent.{service}.telemetry.batch.v1"


def dlq_subject(service: str, consumer: str) -> str:
    """Return where `service` puts what `consumer` could not handle."""
    return f"popagent.{service}.dlq.{consumer}.v1"


def event_consumer(service: str) -> str:
    """Return the durable name of the service's one consumer of events."""
    return f"{service}-events"


STREAMS: Final[tuple[StreamRow, ...]] = (
    StreamRow(EVENTS, ("popagent.*.evt.>",), 7 * DAY_S, 1024 * MIB),
    *(
        StreamRow(live_stream(row.name), (f"popagent.{row.name}.live.>",), DAY_S, 1024 * MIB)
        for row in SERVICES
        if row.writes_live
    ),
    StreamRow(TELEMETRY, ("popagent.*.telemetry.>",), DAY_S, 256 * MIB),
    StreamRow(DLQ, ("popagent.*.dlq.>",), 30 * DAY_S, 256 * MIB),
)
CONSUMERS: Final[tuple[ConsumerRow, ...]] = (
    *(
        ConsumerRow(event_consumer(row.name), EVENTS, row.name, tuple(f"popagent.{owner}.evt.>" for owner in row.hears))
        for row in SERVICES
        if row.hears
    ),
    ConsumerRow("observability-telemetry", TELEMETRY, "observability", ("popagent.*.telemetry.>",)),
)


@dataclass(frozen=True)
class NatsRights:
    """What one NATS user may publish and subscribe to; everything else is refused."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def nats_rights(row: ServiceRow) -> NatsRights:
    """Return the rights of a service, each subject exact: NATS wildcards are whole tokens.

    CONSUMER.CREATE is granted to nobody: its sender names the delivery subject, which could be another's command.
    """
    publish = [f"popagent.{row.name}.{kind}.>" for kind in ("evt", "wake", "telemetry", "dlq")]
    subscribe = [f"{row.inbox_prefix}.>", *(f"popagent.{row.name}.{kind}.>" for kind in ("cmd", "qry", "wake"))]
    for other in row.asks:
        publish += [f"popagent.{other}.cmd.>", f"popagent.{other}.qry.>"]
    publish.append(f"$JS.API.STREAM.INFO.{EVENTS}")  # identity and last sequence, for republication and `resync`
    for consumer in (consumer for consumer in CONSUMERS if consumer.owner == row.name):
        address = f"{consumer.stream}.{consumer.name}"
        publish += [
            f"$JS.API.CONSUMER.INFO.{address}",
            f"$JS.API.CONSUMER.MSG.NEXT.{address}",
            f"$JS.ACK.{address}.>",
        ]
    if row.writes_live:
        publish += [f"popagent.{row.name}.live.>", f"$JS.API.DIRECT.GET.{live_stream(row.name)}"]
    if row.blobs:  # no consumer, no stream info: the bucket's parts are read by direct get
        publish += [f"$O.{BLOBS}.C.>", f"$O.{BLOBS}.M.>", f"$JS.API.DIRECT.GET.OBJ_{BLOBS}"]
    if row.watches:
        publish += [f"$JS.API.DIRECT.GET.{stream.name}" for stream in STREAMS if stream.name.startswith("LIVE_")]
        publish.append(f"$JS.API.DIRECT.GET.{EVENTS}")
        subscribe += ["popagent.*.live.>", "popagent.*.evt.>", transcript_subject("*")]
    return NatsRights(tuple(publish), tuple(subscribe))


ADMIN_USER: Final = "popagent_admin"


def nats_authorization(passwords: dict[str, str]) -> str:
    """Return the `authorization` block of nats.conf; `passwords` maps every service and `admin` to its password."""
    users = [f'    {{ user: "{ADMIN_USER}", password: "{passwords["admin"]}" }}']
    for row in SERVICES:
        rights = nats_rights(row)
        users.append(
            f'    {{ user: "{row.role}", password: "{passwords[row.name]}", permissions: {{\n'
            f"        publish: [{_quoted(rights.publish)}]\n"
            f"        subscribe: [{_quoted(rights.subscribe)}]\n"
            f'        allow_responses: {{ max: 1, expires: "20s" }} }} }}'
        )
    return "authorization {\n  users: [\n" + "\n".join(users) + "\n  ]\n}\n"


def _quoted(subjects: tuple[str, ...]) -> str:
    return ", ".join(f'"{subject}"' for subject in subjects)
