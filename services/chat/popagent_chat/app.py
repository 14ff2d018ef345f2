"""The chat service, put together."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_chat.deps import ChatDeps, RunDeps
from popagent_chat.models import handlers as models
from popagent_chat.models.gateway import ModelGateway
from popagent_chat.models.settings import LocalModelSettings
from popagent_chat.models.usage import UsageTable
from popagent_chat.runtime_settings import handlers as runtime_settings
from popagent_chat.sessions import delete, head
from popagent_chat.sessions import handlers as sessions
from popagent_chat.settings import ChatSettings
from popagent_chat.turns import snapshot, start, stop
from popagent_chat.turns.worker import TurnWorker
from popagent_chat.workspaces import handlers as workspaces
from popagent_host import Service, ServiceDefinition
from popagent_models.admission import Admission, parse_limits
from popagent_models.settings import ModelSettings

SLICES: Final = (workspaces, runtime_settings, models, sessions, head, delete, start, stop, snapshot)


async def build(service: Service[ChatSettings]) -> None:
    """Wire the slices to the host. At the stop turns end first, then the models' connections."""
    settings = ModelSettings.load()
    admission = Admission(parse_limits(settings.limits), service.pool.connect)
    gateway = ModelGateway(settings, LocalModelSettings.load(), admission=admission, usage=UsageTable(service.pool))
    service.on_stop(admission.close)
    service.on_stop(gateway.close)
    running = RunDeps(service.pool, service.outbox, service.bus, service.settings.root(), gateway)
    worker = TurnWorker(running, service.holder, slots=service.settings.turn_slots)
    await worker.start(service.pulse)

    async def stop_turns() -> None:
        await worker.stop(service.settings.stop_grace_s)

    service.on_stop(stop_turns)
    service.serve(all_handlers(), ChatDeps(**vars(running), turns=worker))


def all_handlers() -> Handlers[ChatDeps]:
    """Return the handlers of every slice."""
    handlers = Handlers[ChatDeps]()
    for part in SLICES:
        handlers.include(part.handlers)
    return handlers


SERVICE: Final = ServiceDefinition("chat", ChatSettings, build)
