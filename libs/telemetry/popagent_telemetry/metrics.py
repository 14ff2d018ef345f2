"""Prometheus metrics of this process, one registry; a name asked for twice gives the same metric."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.process_collector import ProcessCollector

REGISTRY: Final = CollectorRegistry()
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
LATENCY_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)
_known: dict[str, MetricWrapperBase] = {}

# Resident set, CPU seconds, open files, start time (`process_*`); garbage collections (`python_gc_*`).
ProcessCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)


def _once(kind: type[_Metric], metric: _Metric | None, name: str) -> _Metric:
    found = _known.setdefault(name, metric) if metric is not None else _known.get(name)
    if not isinstance(found, kind):
        raise TypeError(f"metric {name} is a {type(found).__name__}")
    return found


def counter(name: str, help_text: str, labels: Sequence[str] = ()) -> Counter:
    """Return the counter `name`; labels must come from a small closed set, never ids."""
    metric = None if name in _known else Counter(name, help_text, labels, registry=REGISTRY)
    return _once(Counter, metric, name)


def gauge(name: str, help_text: str, labels: Sequence[str] = ()) -> Gauge:
    """Return the gauge `name`."""
    metric = None if name in _known else Gauge(name, help_text, labels, registry=REGISTRY)
    return _once(Gauge, metric, name)


def histogram(
    name: str, help_text: str, labels: Sequence[str] = (), buckets: Sequence[float] = LATENCY_BUCKETS_S
) -> Histogram:
    """Return the histogram `name`, by default with buckets for seconds from 1 ms to 30 s."""
    metric = None if name in _known else Histogram(name, help_text, labels, registry=REGISTRY, buckets=buckets)
    return _once(Histogram, metric, name)


def render() -> bytes:
    """Return every metric in the Prometheus text format."""
    return generate_latest(REGISTRY)


EVENT_LOOP_LAG: Final = gauge("popagent_event_loop_lag_seconds", "How late the event loop woke up at the last tick")


async def watch_event_loop(tick_s: float = 5.0) -> None:
    """Measure the event loop's lag until cancelled; one timer a process."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + tick_s
        await asyncio.sleep(tick_s)
        EVENT_LOOP_LAG.set(max(0.0, loop.time() - due))
