"""The chat service, put together."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlsplit

from popagent_bus import Handlers
from popagent_chat import jobs, run_snapshots, work
from popagent_chat.agents import company
from popagent_chat.agents import handlers as agents
from popagent_chat.channels import handlers as channels
from popagent_chat.channels import runs as channel_runs
from popagent_chat.channels import store as channel_rows
from popagent_chat.company_asked import company_of
from popagent_chat.deps import ChatDeps, RunDeps
from popagent_chat.hooks import handlers as hooks
from popagent_chat.hooks import store as hook_rows
from popagent_chat.hooks.ending import SessionEnds
from popagent_chat.models import connection
from popagent_chat.models import handlers as models
from popagent_chat.models.health import ModelCheck
from popagent_chat.runtime_settings import handlers as runtime_settings
from popagent_chat.secrets import handlers as secrets
from popagent_chat.secrets.handlers import SecretsCheck
from popagent_chat.secrets.keyring import Keyring
from popagent_chat.sessions import delete, delete_all, export, head, removing
from popagent_chat.sessions import handlers as sessions
from popagent_chat.settings import ChatSettings
from popagent_chat.skills import handlers as skills
from popagent_chat.threads import indexing
from popagent_chat.turns import snapshot, start, stop
from popagent_chat.turns.warming import Warming
from popagent_chat.turns.worker import TurnWorker
from popagent_chat.workspaces import cloning
from popagent_chat.workspaces import handlers as workspaces
from popagent_chat.workspaces.confining import check_commands
from popagent_host import Service, ServiceDefinition
from popagent_kit.settings import home_folder
from popagent_kit.shared_settings import SecretKeySettings
from popagent_models.admission import Admission, parse_limits
from popagent_models.settings import ModelSettings
from popagent_rows import inbox
from popagent_rows.jobs import Jobs
from popagent_runs.hooks.asking import HookCalls
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.audited import PRUNE_EVERY_S, Retention
from popagent_runs.hooks.commanding import HookCommands
from popagent_runs.hooks.origins import parse_origins
from popagent_runs.late_rows import EVERY_S as LATE_EVERY_S
from popagent_runs.models.gateway import ModelGateway
from popagent_runs.models.settings import LocalModelSettings
from popagent_runs.models.usage import UsageTable
from popagent_sandbox.cloning import CloneBounds
from popagent_web.health import SearchCheck
from popagent_web.searxng import SearXNG
from popagent_web.settings import SearchSettings

SLICES: Final = (
    workspaces,
    cloning,
    agents,
    skills,
    company,
    runtime_settings,
    models,
    connection,
    secrets,
    hooks,
    channels,
    channel_runs,
    sessions,
    head,
    export,
    delete,
    delete_all,
    jobs,
    start,
    stop,
    snapshot,
    run_snapshots,
    work,
)


async def build(service: Service[ChatSettings]) -> None:
    """Wire the slices to the host. At the stop turns end first, then the models' connections."""
    settings = ModelSettings.load()
    admission = Admission(parse_limits(settings.limits), service.pool.connect)
    local = LocalModelSettings.load()
    keyring = Keyring.of(SecretKeySettings.load().secret_key)
    usage = UsageTable(service.pool)
    gateway = ModelGateway(settings, local, keyring, admission=admission, usage=usage)
    # They are told and decide nothing: a turn says for itself why it has no model, a tool why it runs no command.
    service.check("model", ModelCheck(service.pool, gateway), decisive=False)
    service.check("secrets", SecretsCheck(service.pool, keyring), decisive=False)
    service.check("shell", check_commands, decisive=False)
    service.on_stop(usage.close)
    service.on_stop(admission.close)
    service.on_stop(gateway.close)
    service.pulse.every(LATE_EVERY_S, "usage of models", usage.write)
    hook_calls, hook_audit = _hooks(service, keyring)
    running = RunDeps(
        pool=service.pool,
        outbox=service.outbox,
        bus=service.bus,
        home=home_folder(),
        workspace_root=service.settings.root(),
        models=gateway,
        hooks=hook_calls,
        hook_audit=hook_audit,
        web=_web_search(service),
        company=company_of(service.pool, service.bus),
    )
    worker = TurnWorker(running, service.holder, slots=service.settings.turn_slots)
    await worker.start(service.pulse)

    service.pulse.every(indexing.EVERY_S, "search index", indexing.SearchIndex(service.pool).keep_up)

    async def stop_turns() -> None:
        await worker.stop(service.settings.stop_grace_s)

    service.on_stop(stop_turns)
    session_ends = SessionEnds()
    service.on_stop(session_ends.close)
    warming = Warming(running)
    warming.start()
    service.on_stop(warming.stop)
    handing = channel_runs.Handing()
    deps = ChatDeps(
        **vars(running),
        turns=worker,
        jobs=Jobs("chat", service.pool, service.holder, news=jobs.news(service.outbox)),
        clone_bounds=CloneBounds(service.settings.clone_minutes * 60, service.settings.clone_mib * 1024**2),
        keyring=keyring,
        session_ends=session_ends,
        connection_tests=asyncio.Semaphore(connection.TESTS_AT_ONCE),
        own_ports=_own_ports(service.settings, local),
        next_turn_changed=warming.changed,
        channel_posted=handing.wake,
    )
    _jobs(service, deps)
    service.pulse.watch(channel_rows.PROBE_WAITING, handing.wake)
    service.run_beside(handing.run(deps), "tasks of posts")
    service.pulse.every(channel_runs.LOOK_EVERY_S, "tasks of posts", lambda: channel_runs.look_after(deps))
    inbox.keep_pruned(service.pool, service.pulse)
    service.serve(all_handlers(), deps)


def _jobs(service: Service[ChatSettings], deps: ChatDeps) -> None:
    """Begin to carry out jobs, and to look for what they left when they were cut off."""

    async def sweep() -> None:
        await cloning.sweep(deps)

    async def rescue() -> None:
        await removing.rescue(deps)

    async def stop() -> None:
        # What is cut off goes on elsewhere, or after the restart.
        await deps.jobs.stop(drain_s=1.0)

    jobs.carry_out(deps)
    deps.jobs.start(service.pulse)
    service.pulse.every(cloning.SWEEP_EVERY_S, "clones that were cut off", sweep)
    service.pulse.every(removing.RESCUE_EVERY_S, "sessions that were half deleted", rescue)
    service.on_stop(stop)


def _hooks(service: Service[ChatSettings], keyring: Keyring) -> tuple[HookCalls, HookAudit]:
    """Return who asks hooks and who writes down what they did; at the stop the latter ends last."""
    commands = HookCommands(service.settings.hook_folder, service.settings.root())
    calls = HookCalls(parse_origins(service.settings.hook_origins), commands, keyring)
    audit = HookAudit(service.pool, hook_rows.AUDIT.add)
    service.on_stop(audit.close)
    service.on_stop(calls.close)
    service.pulse.every(LATE_EVERY_S, "what hooks did", audit.write)
    service.pulse.every(PRUNE_EVERY_S, "audit of hooks", Retention(service.pool, hook_rows.AUDIT).prune)
    return calls, audit


def _web_search(service: Service[ChatSettings]) -> SearXNG:
    """Return who searches the web; health tells of it, and it decides nothing."""
    settings = SearchSettings.load()
    searxng = SearXNG(settings.url)
    check = SearchCheck(searxng, is_given=settings.is_given)
    service.check("search", check, decisive=False)
    service.on_stop(searxng.close)
    service.on_stop(check.close)
    return searxng


def _own_ports(settings: ChatSettings, local: LocalModelSettings) -> frozenset[int]:
    embedded = urlsplit(local.url).port if local.url else None
    return frozenset(port for port in (settings.health_port, embedded) if port)


def all_handlers() -> Handlers[ChatDeps]:
    """Return the handlers of every slice."""
    handlers = Handlers[ChatDeps]()
    for part in SLICES:
        handlers.include(part.handlers)
    return handlers


SERVICE: Final = ServiceDefinition("chat", ChatSettings, build)
