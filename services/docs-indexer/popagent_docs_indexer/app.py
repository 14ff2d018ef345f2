"""The docs-indexer service: what is written, per workspace."""

from __future__ import annotations

from typing import Final

from popagent_bus import Handlers
from popagent_docs_indexer.deps import DocsDeps
from popagent_docs_indexer.importing import carrying_out
from popagent_docs_indexer.importing import handlers as importing
from popagent_docs_indexer.pages import handlers as pages
from popagent_docs_indexer.pages import history
from popagent_docs_indexer.search import handlers as search
from popagent_docs_indexer.search import keeping
from popagent_docs_indexer.tree import handlers as tree
from popagent_host import Service, ServiceDefinition, ServiceSettings, run
from popagent_rows.jobs import Job, Jobs

SLICES: Final = (pages, history, tree, search, importing)


async def build(service: Service[ServiceSettings]) -> None:
    """Wire the slices to the host; any number of processes may serve one schema."""
    jobs = Jobs("docs-indexer", service.pool, service.holder, news=importing.news(service.outbox))
    deps = DocsDeps(service.pool, service.outbox, service.bus, jobs)

    @jobs.handles(carrying_out.KIND)
    async def import_docs(job: Job) -> dict[str, object]:
        return await carrying_out.carry_out(deps, job)

    async def stop() -> None:
        # What is cut off goes on elsewhere, or after the restart.
        await jobs.stop(drain_s=1.0)

    jobs.start(service.pulse)
    service.on_stop(stop)

    async def drop_deleted() -> None:
        await history.drop_deleted(service.pool)

    service.pulse.every(history.PRUNE_PERIOD_S, "deleted pages", drop_deleted)
    service.pulse.every(keeping.KEEP_UP_EVERY_S, "pages of older rules", lambda: keeping.keep_up(deps))
    service.pulse.every(keeping.FORGET_EVERY_S, "words that stand nowhere", lambda: keeping.forget_words(deps))
    service.serve(all_handlers(), deps)


def all_handlers() -> Handlers[DocsDeps]:
    """Return the handlers of every slice."""
    handlers = Handlers[DocsDeps]()
    for part in SLICES:
        handlers.include(part.handlers)
    return handlers


SERVICE: Final = ServiceDefinition("docs-indexer", ServiceSettings, build)


def main() -> None:
    """Run the service until it is told to stop."""
    run(SERVICE)
