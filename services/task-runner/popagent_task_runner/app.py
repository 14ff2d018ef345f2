"""Composition root of the task-runner: work that outlives a request. It offers nothing yet."""

from __future__ import annotations

from popagent_host import ServiceDefinition, ServiceSettings, run


def main() -> None:
    """Run the service until it is told to stop."""
    run(ServiceDefinition("task-runner", ServiceSettings))
