"""Composition root of the docs-indexer: what is written: documentation and code. It offers nothing yet."""

from __future__ import annotations

from popagent_host import ServiceDefinition, ServiceSettings, run


def main() -> None:
    """Run the service until it is told to stop."""
    run(ServiceDefinition("docs-indexer", ServiceSettings))
