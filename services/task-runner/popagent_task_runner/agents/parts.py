"""What the runs of this process share, and what is made of it: who carries tasks out, and who tells hooks of them."""

from __future__ import annotations

from popagent_host import Service
from popagent_kit.settings import home_folder
from popagent_models.admission import Admission, parse_limits
from popagent_models.settings import ModelSettings
from popagent_runs.begun import RunParts
from popagent_runs.hooks.asking import HookCalls
from popagent_runs.hooks.audit import HookAudit
from popagent_runs.hooks.audited import PRUNE_EVERY_S, Retention
from popagent_runs.hooks.commanding import HookCommands
from popagent_runs.hooks.origins import parse_origins
from popagent_runs.late_rows import EVERY_S
from popagent_runs.models.gateway import ModelGateway
from popagent_runs.models.settings import LocalModelSettings
from popagent_runs.models.usage import UsageTable
from popagent_task_runner.agents.company import company_of
from popagent_task_runner.agents.executor import AgentExecutor
from popagent_task_runner.agents.observing import TaskHooks
from popagent_task_runner.agents.process_key import ProcessKey
from popagent_task_runner.agents.snapshots import Snapshots
from popagent_task_runner.agents.store import AUDIT
from popagent_task_runner.settings import TaskRunnerSettings
from popagent_web.searxng import SearXNG
from popagent_web.settings import SearchSettings


def agents_of(service: Service[TaskRunnerSettings]) -> tuple[AgentExecutor, TaskHooks]:
    """Return the executor and who tells hooks; what they open is closed at the stop, after the tasks have ended."""
    key = ProcessKey()
    audit = _hook_audit(service)
    calls = _hook_calls(service, key)
    parts = RunParts(
        home=home_folder(),
        workspace_root=service.settings.root(),
        models=_models(service, key),
        hooks=calls,
        hook_audit=audit,
        web=_web(service),
        company=company_of(service),
    )
    hooks = TaskHooks(service.bus, service.pool, calls, audit, key)
    service.on_stop(hooks.close)
    return AgentExecutor(parts, Snapshots(service.bus, key)), hooks


def _models(service: Service[TaskRunnerSettings], key: ProcessKey) -> ModelGateway:
    """Which server answers, chat says run by run; how long it may take, and how many calls at once, is said here."""
    settings = ModelSettings.load().model_copy(update={"model_url": None, "model_key": None, "model": None})
    admission = Admission(parse_limits(settings.limits), service.pool.connect)
    usage = UsageTable(service.pool)
    gateway = ModelGateway(settings, LocalModelSettings(), key, admission=admission, usage=usage)
    service.on_stop(usage.close)
    service.pulse.every(EVERY_S, "usage of models", usage.write)
    service.on_stop(admission.close)
    service.on_stop(gateway.close)
    return gateway


def _hook_calls(service: Service[TaskRunnerSettings], key: ProcessKey) -> HookCalls:
    commands = HookCommands(service.settings.hook_folder, service.settings.root())
    calls = HookCalls(parse_origins(service.settings.hook_origins), commands, key)
    service.on_stop(calls.close)
    return calls


def _hook_audit(service: Service[TaskRunnerSettings]) -> HookAudit:
    audit = HookAudit(service.pool, AUDIT.add)
    service.on_stop(audit.close)
    service.pulse.every(EVERY_S, "what hooks did", audit.write)
    service.pulse.every(PRUNE_EVERY_S, "audit of hooks", Retention(service.pool, AUDIT).prune)
    return audit


def _web(service: Service[TaskRunnerSettings]) -> SearXNG:
    searxng = SearXNG(SearchSettings.load().url)
    service.on_stop(searxng.close)
    return searxng
