"""Every series that the table names is exposed, and nothing else."""

from __future__ import annotations

import re

from noetl.clock import SteadyClock
from noetl.model.events import Event
from noetl.observe.engine_counts import EngineCounts
from noetl.observe.export.counts import ExportCounts
from noetl.observe.series import ALL, SERIES
from noetl.observe.task_counts import TaskCounts
from noetl.ports import Commit
from noetl.server.metrics.server_metrics import Metrics, Readings

# Of seed 002, §8.1, §8.6, §8.10 and §8.11, with their labels.
PROMISED = {
    "noetl_executions_started_total": {"workflow"},
    "noetl_executions_completed_total": {"workflow", "status"},
    "noetl_step_calls_total": {"workflow", "step"},
    "noetl_step_runs_total": {"workflow", "step", "ok"},
    "noetl_step_duration_seconds": {"workflow", "step"},
    "noetl_loop_items_total": {"workflow", "step"},
    "noetl_loop_completed_total": {"workflow", "step", "ok"},
    "noetl_task_queue_inflight": {"pool"},
    "noetl_sink_dispatch_total": {"sink", "workflow", "step"},
    "noetl_sink_duration_seconds": {"sink", "workflow", "step"},
    "noetl_when_eval_total": {"workflow", "step", "outcome"},
    "noetl_edge_eval_total": {"workflow", "from", "to", "outcome"},
    "noetl_worker_tasks_started_total": {"kind", "pool"},
    "noetl_worker_tasks_completed_total": {"kind", "pool", "ok"},
    "noetl_worker_task_duration_seconds": {"kind"},
    "noetl_sink_tasks_completed_total": {"sink", "ok"},
    "noetl_plugin_errors_total": {"kind", "error_class"},
    "noetl_dlq_total": {"kind", "sink"},
    "dlq_entries": {"status"},
    "noetl_sink_mode_total": {"sink", "mode"},
    "noetl_sink_retry_total": {"sink"},
    "noetl_worker_heartbeat_timestamp": {"worker_id"},
    "parked_steps_gauge": {"workflow"},
}
_TYPE = re.compile(r"^# TYPE (\w+) (counter|gauge|histogram)$", re.MULTILINE)


def exposed(page: bytes) -> dict[str, str]:
    return {name: kind for name, kind in _TYPE.findall(page.decode()) if not name.endswith("_created")}


def test_what_operators_were_promised_is_in_the_table() -> None:
    assert {name: set(SERIES[name].labels) for name in PROMISED if name in SERIES} == PROMISED


def test_a_page_has_the_table_and_nothing_else() -> None:
    also = (*EngineCounts().counted, *TaskCounts().counted, *ExportCounts(SteadyClock()).counted)
    page = Metrics(also=also).page(Readings())
    assert exposed(page) == {one.name: one.type for one in ALL}


def test_no_name_is_in_the_table_twice_and_each_has_a_sentence() -> None:
    assert len(SERIES) == len(ALL)
    assert [one.name for one in ALL if not one.about.endswith(".")] == []
    assert [one.name for one in ALL if (one.type == "histogram") != bool(one.buckets)] == []
    assert [one.name for one in ALL if (one.type == "counter") != one.name.endswith("_total")] == []


def test_ten_thousand_executions_make_no_more_series_than_one() -> None:
    """Labels hold names that people write; an id in one would grow without end."""
    names = ("playbook.started", "token.created", "step.scheduled", "step.done", "step.failed", "playbook.finished")

    def page(count: int) -> set[str]:
        metrics = Metrics()
        for number in range(count):
            events = [
                Event(
                    f"{number}{name}", str(number), 1, name, 5, entity_id="a", step_run_id=f"a#{number}",
                    payload={"step": "a", "status": "completed"},
                )
                for name in names
            ]  # fmt: skip
            metrics.committed([Commit(str(number), 0, tuple(events), projection={"path": "p"})])
        return {line.rpartition(" ")[0] for line in metrics.page(Readings()).decode().splitlines() if line[0] != "#"}

    assert page(10_000) == page(1)


def test_gauges_add_up_the_queues_of_a_pool() -> None:
    rows = [
        {"pool": "", "requires": (), "queued": 2, "leased": 1, "dead": 0, "oldest": 4_000},
        {"pool": "", "requires": ("gpu",), "queued": 3, "leased": 0, "dead": 0, "oldest": 9_000},
        {"pool": "slow", "requires": (), "queued": 0, "leased": 7, "dead": 0, "oldest": None},
    ]
    page = (
        Metrics()
        .page(Readings(rows, seen={"host:1": 8_500}, parked={"a/b": 2}, followers=3, now=10_000))
        .decode()
        .splitlines()
    )
    for line in (
        'noetl_task_queue_inflight{pool="default"} 6.0',
        'noetl_task_queue_inflight{pool="slow"} 7.0',
        'noetl_queue_depth{pool="default"} 5.0',
        'noetl_queue_depth{pool="slow"} 0.0',
        'noetl_queue_age_seconds{pool="default"} 6.0',
        'noetl_queue_age_seconds{pool="slow"} 0.0',
        'noetl_worker_heartbeat_timestamp{worker_id="host:1"} 8.5',
        'parked_steps_gauge{workflow="a/b"} 2.0',
        "noetl_sse_followers 3.0",
    ):
        assert line in page


def test_a_condition_that_cannot_be_evaluated_is_no_false_one() -> None:
    metrics = Metrics()
    for payload in ({"allow": True}, {"allow": False}, {"allow": False, "errors": ["no such name"]}):
        event = Event("e", "1", 1, "policy.admit.evaluated", 0, entity_id="a", payload=payload)
        metrics.committed([Commit("1", 0, (event,), projection={"path": "p"})])
    page = metrics.page(Readings()).decode()
    for outcome in ("true", "false", "error"):
        assert f'noetl_when_eval_total{{outcome="{outcome}",step="a",workflow="p"}} 1.0' in page


def test_a_step_run_waits_from_scheduled_to_its_first_start() -> None:
    metrics = Metrics()
    times = {"step.scheduled": 1_000, "step.started": 3_000, "step.done": 9_000}
    events = [Event(name, "1", 1, name, at, entity_id="a", step_run_id="a#1") for name, at in times.items()]
    again = Event("again", "1", 1, "step.started", 8_000, entity_id="a", step_run_id="a#1")  # after a suspension
    metrics.committed([Commit("1", 0, (events[0], events[1], again, events[2]), projection={"path": "p"})])
    page = metrics.page(Readings()).decode().splitlines()
    assert 'noetl_claim_wait_seconds_sum{step="a",workflow="p"} 2.0' in page
    assert 'noetl_claim_wait_seconds_count{step="a",workflow="p"} 1.0' in page
    assert 'noetl_events_total{workflow="p"} 4.0' in page
