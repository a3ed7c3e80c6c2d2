"""What a server counts is written as the library writes it."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from noetl.model.events import Event
from noetl.observe.series import SERIES
from noetl.ports import Commit
from noetl.server.metrics.server_metrics import _MAX_UNCOUNTED, Metrics, Readings

pytestmark = pytest.mark.asyncio
TOOK_MS = (40, 100, 101, 700, 5_000, 400_000)


def commit(events: list[Event]) -> Commit:
    return Commit("1", 0, tuple(events), projection={"path": "a/b", "status": "running"})


def told(text: bytes, name: str) -> list[str]:
    """Return the lines of one metric without its creation time."""
    return sorted(line for line in text.decode().splitlines() if name in line and "_created" not in line)


async def test_a_page_says_what_the_library_would_say_of_the_same() -> None:
    metrics, events = Metrics(), []
    registry = CollectorRegistry()
    runs = Counter("noetl_step_runs_total", "Step-runs ended.", ("workflow", "step", "ok"), registry=registry).labels(
        "a/b", 'odd "step"', "true"
    )
    about = ("noetl_step_duration_seconds", "Time from scheduled to ended.", ("workflow", "step"))
    spread = Histogram(*about, registry=registry, buckets=SERIES[about[0]].buckets).labels("a/b", 'odd "step"')
    for number, took in enumerate(TOOK_MS):
        run = f"s#{number}"
        for name, at in (("step.scheduled", 0), ("step.started", 0), ("step.done", took)):
            events.append(Event(f"{number}{name}", "1", 0, name, at, entity_id='odd "step"', step_run_id=run))
        runs.inc()
        spread.observe(took / 1000)
    metrics.committed([commit(events)])
    page, expected = metrics.page(Readings()), generate_latest(registry)
    for name in ("noetl_step_runs", "noetl_step_duration_seconds"):
        assert told(expected, name)
        assert told(page, name) == told(expected, name)


async def test_what_is_counted_twice_is_added_up() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.committed([commit([Event("e", "1", 0, "playbook.started", 0)])])
    metrics.page(Readings())
    metrics.committed([commit([Event("e", "1", 0, "playbook.started", 0)])])
    assert b'noetl_executions_started_total{workflow="a/b"} 4.0' in metrics.page(Readings())


async def test_what_begins_and_ends_in_one_commit_is_measured_in_its_order() -> None:
    """A failed run that is retried starts again after its end, maybe in one commit."""
    metrics = Metrics()
    names = ("step.scheduled", "step.failed", "step.scheduled", "step.done", "step.done")
    times = (1_000, 3_000, 4_000, 4_500, 9_000)  # the last one ends what has not begun
    metrics.committed(
        [
            commit(
                [
                    Event("e", "1", n, name, at, entity_id="s", step_run_id="s#1")
                    for n, (name, at) in enumerate(zip(names, times, strict=True))
                ]
            )
        ]
    )
    page = told(metrics.page(Readings()), "noetl_step_duration_seconds")
    assert 'noetl_step_duration_seconds_count{step="s",workflow="a/b"} 2.0' in page
    assert 'noetl_step_duration_seconds_sum{step="s",workflow="a/b"} 2.5' in page


async def test_a_suspended_run_lasts_from_its_first_scheduling() -> None:
    metrics = Metrics()
    steps = (("step.scheduled", 1_000), ("step.suspended", 1_100), ("step.scheduled", 61_000), ("step.done", 61_500))
    metrics.committed(
        [commit([Event(f"{at}", "1", 0, name, at, entity_id="s", step_run_id="s#1") for name, at in steps])]
    )
    page = told(metrics.page(Readings()), "noetl_step_duration_seconds")
    assert 'noetl_step_duration_seconds_sum{step="s",workflow="a/b"} 60.5' in page


async def test_commits_wait_to_be_counted_but_not_without_bound() -> None:
    one, other = Metrics(), Metrics()
    commits = [commit([Event(str(n), "1", n, "step.done", 0, entity_id=f"s{n % 7}")]) for n in range(1_000)]
    for made in commits:
        one.committed([made])
        assert len(one._uncounted) < _MAX_UNCOUNTED
    other.committed(commits)
    assert other._uncounted == []
    name = "noetl_step_runs_total"
    assert told(one.page(Readings()), name) == told(other.page(Readings()), name)
    assert 'noetl_step_runs_total{ok="true",step="s6",workflow="a/b"} 142.0' in told(one.page(Readings()), name)


async def test_arcs_and_tokens_are_counted_by_where_they_lead() -> None:
    arcs = [{"arc": 0, "step": "b"}, {"arc": 1, "step": "c"}, {"arc": 2, "step": "d", "error": "broken"}]
    routed = Event("e", "1", 1, "next.evaluated", 0, entity_id="a", payload={"arcs": arcs, "taken": [1]})
    token = Event("f", "1", 2, "token.created", 0, entity_id="t1", payload={"step": "c"})
    metrics = Metrics()
    metrics.committed([commit([routed, token]), commit([routed, token])])
    page = metrics.page(Readings())
    assert told(page, "noetl_edge_eval_total{") == [
        'noetl_edge_eval_total{from="a",outcome="error",to="d",workflow="a/b"} 2.0',
        'noetl_edge_eval_total{from="a",outcome="skipped",to="b",workflow="a/b"} 2.0',
        'noetl_edge_eval_total{from="a",outcome="taken",to="c",workflow="a/b"} 2.0',
    ]
    assert told(page, "noetl_step_calls_total{") == ['noetl_step_calls_total{step="c",workflow="a/b"} 2.0']
