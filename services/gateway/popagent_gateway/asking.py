"""What routes are given: the bus, ids that were checked, and the id of a command."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from fastapi import Depends, Header, Path, Request

from popagent_bus import Bus as MessageBus
from popagent_gateway.streams.closing import Closing
from popagent_gateway.streams.event_hub import EventHub
from popagent_gateway.suite_health import SuiteHealth
from popagent_kit.ids import Id, new_id

# An id in the path; one that no store could hold answers 404 like an unknown one, and never reaches a subject.
PathId: TypeAlias = Annotated[Id, Path()]


async def _bus(request: Request) -> MessageBus:
    bus: MessageBus = request.app.state.bus
    return bus


async def _suite(request: Request) -> SuiteHealth:
    suite: SuiteHealth = request.app.state.suite
    return suite


async def _hub(request: Request) -> EventHub:
    hub: EventHub = request.app.state.hub
    return hub


async def _closing(request: Request) -> Closing:
    closing: Closing = request.app.state.closing
    return closing


async def _command_id(
    idempotency_key: Annotated[
        Id | None, Header(description="Send the same key again to repeat a command without repeating its effect.")
    ] = None,
) -> str:
    return idempotency_key or new_id()


Bus: TypeAlias = Annotated[MessageBus, Depends(_bus)]
Suite: TypeAlias = Annotated[SuiteHealth, Depends(_suite)]
Hub: TypeAlias = Annotated[EventHub, Depends(_hub)]
OpenStreams: TypeAlias = Annotated[Closing, Depends(_closing)]
CommandId: TypeAlias = Annotated[str, Depends(_command_id)]
