"""What a service does with the messages it receives, collected before the bus is connected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from popagent_proto import matrix
from popagent_proto.base import Event, Request

Deps = TypeVar("Deps")
R = TypeVar("R", bound=Request[Any])
E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A message of a durable consumer before it is parsed; `deliveries` counts from 1."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    stream: str
    seq: int
    deliveries: int


@dataclass
class Handlers(Generic[Deps]):
    """One handler for a request, any number for an event; `include` adds those of a slice."""

    requests: dict[str, tuple[type[Request[Any]], Callable[[Deps, Any], Awaitable[Any]]]] = field(default_factory=dict)
    events: dict[str, tuple[type[Event], list[Callable[[Deps, Any], Awaitable[None]]]]] = field(default_factory=dict)
    raw: dict[str, Callable[[Deps, RawMessage], Awaitable[None]]] = field(default_factory=dict)

    def answers(
        self, message: type[R]
    ) -> Callable[[Callable[[Deps, R], Awaitable[Any]]], Callable[[Deps, R], Awaitable[Any]]]:
        """Register the one handler of a command or query; it returns `message.reply_type()` or raises AppError."""

        def register(handler: Callable[[Deps, R], Awaitable[Any]]) -> Callable[[Deps, R], Awaitable[Any]]:
            if message.subject in self.requests:
                raise TypeError(f"{message.subject} has a handler already")
            self.requests[message.subject] = (message, handler)
            return handler

        return register

    def hears(
        self, event: type[E]
    ) -> Callable[[Callable[[Deps, E], Awaitable[None]]], Callable[[Deps, E], Awaitable[None]]]:
        """Register a handler of an event; it may come again, so its effect goes through `inbox`."""

        def register(handler: Callable[[Deps, E], Awaitable[None]]) -> Callable[[Deps, E], Awaitable[None]]:
            self.events.setdefault(event.subject, (event, []))[1].append(handler)
            return handler

        return register

    def takes(
        self, consumer: str
    ) -> Callable[[Callable[[Deps, RawMessage], Awaitable[None]]], Callable[[Deps, RawMessage], Awaitable[None]]]:
        """Register a handler of every message of a durable consumer, unparsed (telemetry, or all events at once)."""
        if consumer not in {row.name for row in matrix.CONSUMERS}:
            raise TypeError(f"the matrix has no consumer {consumer}")

        def register(
            handler: Callable[[Deps, RawMessage], Awaitable[None]],
        ) -> Callable[[Deps, RawMessage], Awaitable[None]]:
            self.raw[consumer] = handler
            return handler

        return register

    def include(self, other: Handlers[Deps]) -> None:
        """Add every handler of `other`."""
        for subject, request in other.requests.items():
            if subject in self.requests:
                raise TypeError(f"{subject} has a handler already")
            self.requests[subject] = request
        for subject, (event, handlers) in other.events.items():
            self.events.setdefault(subject, (event, []))[1].extend(handlers)
        self.raw.update(other.raw)

    def check_owner(self, service: str) -> None:
        """Refuse handlers of what is not this service's, at start and not by silence."""
        row = matrix.BY_NAME[service]
        for subject in self.requests:
            if subject.split(".")[1] != service:
                raise TypeError(f"{service} cannot answer {subject}")
        for subject in self.events:
            if subject.split(".")[1] not in row.hears:
                raise TypeError(f"the matrix does not let {service} hear {subject}")
        for consumer in self.raw:
            if consumer not in {known.name for known in matrix.CONSUMERS if known.owner == service}:
                raise TypeError(f"{consumer} is not a consumer of {service}")
