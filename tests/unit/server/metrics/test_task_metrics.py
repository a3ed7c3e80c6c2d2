"""What the log tells of tasks is counted once, also where it tells only of items."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.engine.plan.plan import Plan, plan
from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.metrics.server_metrics import Metrics, Readings
from noetl.testing.play import read
from tests.unit.engine.given import book

pytestmark = pytest.mark.asyncio
BOOK = book(
    """
  - step: save
    loop: {in: [1, 2], iterator: n}
    tool:
      - first: {kind: postgres, auth: db, table: rows, mode: upsert, key: id, args: {id: 1}}
      - then: {kind: python, code: "result = 1"}
      - last: {kind: postgres, auth: db, table: more, mode: insert, args: {id: 1}}
"""
)
TIMEOUT = {"kind": "timeout", "message": "too long"}


def page(*events: tuple[str, dict[str, Any], dict[str, Any]], text: str = BOOK, known: bool = True) -> list[str]:
    """Return the metrics after some events of a step's tasks."""
    made: Plan = plan(read(text), "hash")
    metrics = Metrics(lambda playbook: made if known else None)
    log = [
        Event(str(n), "1", n, name, 0, step_run_id="save#1", payload=payload, **{"entity_id": "save", **rest})
        for n, (name, payload, rest) in enumerate(events)
    ]
    metrics.committed([Commit("1", 0, tuple(log), projection={"path": "p", "playbook": "hash"})])
    lines = metrics.page(Readings()).decode().splitlines()
    told = [line for line in lines if line.startswith("noetl_") and "_created" not in line and "_bucket" not in line]
    others = tuple(f"noetl_{name}" for name in ("loop", "step", "mess", "work", "outbox", "events", "key", "sse"))
    return sorted(line.removeprefix("noetl_") for line in told if not line.startswith(others))


async def test_an_item_that_went_well_has_written_with_every_sink() -> None:
    assert page(("loop.iteration.done", {}, {"iteration": 0})) == [
        'sink_dispatch_total{sink="postgres:more",step="save",workflow="p"} 1.0',
        'sink_dispatch_total{sink="postgres:rows",step="save",workflow="p"} 1.0',
        'sink_mode_total{mode="insert",sink="postgres:more"} 1.0',
        'sink_mode_total{mode="upsert",sink="postgres:rows"} 1.0',
        'sink_tasks_completed_total{ok="true",sink="postgres:more"} 1.0',
        'sink_tasks_completed_total{ok="true",sink="postgres:rows"} 1.0',
    ]


async def test_an_item_that_failed_has_written_what_stands_before() -> None:
    found = page(("loop.iteration.failed", {"error": {"kind": "parse", "message": "no", "task": "then"}}, {}))
    assert [line for line in found if "completed" in line] == [
        'sink_tasks_completed_total{ok="true",sink="postgres:rows"} 1.0'
    ]
    assert page(("loop.iteration.failed", {"error": TIMEOUT}, {})) == [
        'timeouts_total{of="item",step="save",workflow="p"} 1.0'
    ]


async def test_of_an_item_that_a_policy_led_elsewhere_nothing_is_guessed() -> None:
    led = ("policy.task.evaluated", {"do": "break"}, {"iteration": 0, "entity_id": "first"})
    assert page(led, ("loop.iteration.done", {}, {"iteration": 0})) == []


async def test_where_each_task_is_recorded_items_are_not_counted_twice() -> None:
    text = BOOK.replace("\nworkflow", "\nexecutor: {spec: {durability: task}}\nworkflow")
    done: tuple[str, dict[str, Any], dict[str, Any]] = (
        "task.done",
        {},
        {"entity_id": "first", "iteration": 0, "duration_ms": 40.0},
    )
    found = page(done, ("loop.iteration.done", {}, {"iteration": 0}), text=text)
    assert 'sink_dispatch_total{sink="postgres:rows",step="save",workflow="p"} 1.0' in found
    assert 'sink_duration_seconds_sum{sink="postgres:rows",step="save",workflow="p"} 0.04' in found
    assert not [line for line in found if "more" in line]


async def test_a_sink_that_is_tried_again_and_fails() -> None:
    error = {"kind": "db_timeout", "message": "no", "retryable": True}
    found = page(
        ("task.attempt.failed", {"error": error, "delay_ms": 5}, {"entity_id": "first", "attempt": 1}),
        ("task.attempt.failed", {"error": error}, {"entity_id": "first", "attempt": 2}),
        ("task.failed", {"error": error}, {"entity_id": "first", "attempt": 2, "duration_ms": 1.0}),
    )
    assert [line for line in found if "duration" not in line] == [
        'plugin_errors_total{error_class="TimeoutError",kind="postgres"} 2.0',
        'sink_dispatch_total{sink="postgres:rows",step="save",workflow="p"} 2.0',
        'sink_retry_total{sink="postgres:rows"} 1.0',
        'sink_tasks_completed_total{ok="false",sink="postgres:rows"} 1.0',
        'task_retries_total{kind="postgres",step="save",workflow="p"} 1.0',
        'timeouts_total{of="sink",step="save",workflow="p"} 2.0',
    ]


async def test_deadlines_and_cancellations() -> None:
    assert page(
        ("timer.fired", {"cause": "step"}, {}),
        ("timer.fired", {"cause": "wake"}, {}),
        ("execution.cancelled", {"cause": "timeout"}, {}),
        ("execution.cancelled", {"cause": "cancelled"}, {}),
        ("step.failed", {"error": {"kind": "cancelled", "message": "enough"}}, {}),
    ) == [
        'cancellations_total{what="execution",workflow="p"} 1.0',
        'cancellations_total{what="step",workflow="p"} 1.0',
        'timeouts_total{of="step",step="save",workflow="p"} 1.0',
    ]


async def test_a_plan_that_is_not_there_makes_no_guess() -> None:
    assert page(("loop.iteration.done", {}, {"iteration": 0}), ("task.done", {}, {}), known=False) == []
