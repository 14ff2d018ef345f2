"""Composition root of the scheduler: when work starts. It offers nothing yet."""

from __future__ import annotations

from popagent_host import ServiceDefinition, ServiceSettings, run


def main() -> None:
    """Run the service until it is told to stop."""
    run(ServiceDefinition("scheduler", ServiceSettings))
