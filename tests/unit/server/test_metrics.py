"""What a server counts is written as the library writes it."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.metrics import _STEP_BUCKETS, Metrics

pytestmark = pytest.mark.asyncio
TOOK_MS = (40, 100, 101, 700, 5_000, 400_000)


def commit(events: list[Event]) -> Commit:
    return Commit("1", 0, tuple(events), projection={"path": "a/b", "status": "running"})


def told(text: bytes, name: str) -> list[str]:
    """Give the lines of one metric, but for when it was made."""
    return sorted(line for line in text.decode().splitlines() if name in line and "_created" not in line)


async def test_a_page_says_what_the_library_would_say_of_the_same() -> None:
    metrics, events = Metrics(), []
    registry = CollectorRegistry()
    runs = Counter(
        "noetl_step_runs_total", "Step-runs that a worker began.", ("workflow", "step"), registry=registry
    ).labels("a/b", 'odd "step"')
    about = ("noetl_step_duration_seconds", "From scheduled to ended.", ("workflow", "step"))
    spread = Histogram(*about, registry=registry, buckets=_STEP_BUCKETS).labels("a/b", 'odd "step"')
    for number, took in enumerate(TOOK_MS):
        run = f"s#{number}"
        for name, at in (("step.scheduled", 0), ("step.started", 0), ("step.done", took)):
            events.append(Event(f"{number}{name}", "1", 0, name, at, entity_id='odd "step"', step_run_id=run))
        runs.inc()
        spread.observe(took / 1000)
    metrics.committed(commit(events))
    page, expected = metrics.page((), 0, 0, {}, {}), generate_latest(registry)
    for name in ("noetl_step_runs", "noetl_step_duration_seconds"):
        assert told(expected, name)
        assert told(page, name) == told(expected, name)


async def test_what_is_counted_twice_is_added_up() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.committed(commit([Event("e", "1", 0, "playbook.started", 0)]))
    metrics.page((), 0, 0, {}, {})
    metrics.committed(commit([Event("e", "1", 0, "playbook.started", 0)]))
    assert b'noetl_executions_started_total{workflow="a/b"} 4.0' in metrics.page((), 0, 0, {}, {})
