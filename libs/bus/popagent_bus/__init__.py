"""Messages between services: ask, publish, hear, live streams and blobs over NATS."""

from popagent_bus import no_websockets  # noqa: F401 (before anything imports the NATS client)
from popagent_bus.bus import Bus
from popagent_bus.connection import Connection, StoredMessage, StoredPage, StreamState, check_subject, unsubscribe
from popagent_bus.handlers import Handlers, RawMessage
from popagent_bus.replies import RemoteError
from popagent_bus.state import BusState

__all__ = [
    "Bus",
    "BusState",
    "Connection",
    "Handlers",
    "RawMessage",
    "RemoteError",
    "StoredMessage",
    "StoredPage",
    "StreamState",
    "check_subject",
    "unsubscribe",
]
