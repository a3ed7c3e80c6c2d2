"""Table of every Prometheus series that NoETL exposes.

Registry, reference page, dashboards and alert rules are made of it, so that none can name a series or a label that does not
exist. Labels hold names of playbooks, steps, kinds and pools: their number is bounded by what people write, never by what
runs. Tested in tests/unit/observe/test_series.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

Type = Literal["counter", "gauge", "histogram"]
Source = Literal["server", "worker"]

_STEP: Final = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_SINK: Final = (0.01, 0.05, 0.1, 0.2, 0.5, 1, 2)
_TASK: Final = (0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_HTTP: Final = (0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_PYTHON: Final = (0.1, 0.5, 1, 2, 5, 10, 30)
_COMMIT: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1)
_WAIT: Final = (0.001, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800)
_LAG: Final = (0.5, 1, 2, 5, 10, 30, 60, 300, 1800, 3600)
_BATCH: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_DATABASES: Final = ("duckdb", "ducklake", "postgres", "snowflake", "transfer")


class Series(NamedTuple):
    """Name, type and labels of a series, and who counts it."""

    name: str
    type: Type
    labels: tuple[str, ...]
    about: str  # one sentence
    source: Source = "server"
    buckets: tuple[float, ...] = ()
    buckets_of: Mapping[str, tuple[float, ...]] = {}  # by the first label, instead of `buckets`

    def bounds(self, labels: tuple[str, ...]) -> tuple[float, ...]:
        """Return the upper bounds of the buckets of a histogram for these labels."""
        return self.buckets_of.get(labels[0], self.buckets) if labels else self.buckets


_WORKFLOW: Final = ("workflow",)
_OF_STEP: Final = ("workflow", "step")
_OF_SINK: Final = ("sink", "workflow", "step")

ALL: Final = (
    Series("noetl_executions_started_total", "counter", _WORKFLOW, "Executions started."),
    Series("noetl_executions_completed_total", "counter", ("workflow", "status"), "Executions ended."),
    Series("noetl_executions_repaired_total", "counter", ("workflow", "what"), "Executions repaired."),
    Series("noetl_step_calls_total", "counter", _OF_STEP, "Tokens sent to a step."),
    Series("noetl_step_runs_total", "counter", (*_OF_STEP, "ok"), "Step-runs ended."),
    Series("noetl_step_duration_seconds", "histogram", _OF_STEP, "Time from scheduled to ended.", buckets=_STEP),
    Series("noetl_claim_wait_seconds", "histogram", _OF_STEP, "Time from scheduled to started.", buckets=_WAIT),
    Series("noetl_events_total", "counter", _WORKFLOW, "Events written to the log."),
    Series("parked_steps_gauge", "gauge", _WORKFLOW, "Steps whose gate denied all of their tokens."),
    Series("noetl_loop_items_total", "counter", _OF_STEP, "Loop items."),
    Series("noetl_loop_completed_total", "counter", (*_OF_STEP, "ok"), "Loop items ended."),
    Series("noetl_when_eval_total", "counter", (*_OF_STEP, "outcome"), "Admission conditions."),
    Series("noetl_edge_eval_total", "counter", ("workflow", "from", "to", "outcome"), "Arcs evaluated."),
    Series("noetl_sink_dispatch_total", "counter", _OF_SINK, "Sink write attempts."),
    Series("noetl_sink_duration_seconds", "histogram", _OF_SINK, "Duration of a sink write.", buckets=_SINK),
    Series("noetl_sink_tasks_completed_total", "counter", ("sink", "ok"), "Sink tasks ended."),
    Series("noetl_sink_mode_total", "counter", ("sink", "mode"), "Successful sink writes by mode."),
    Series("noetl_sink_retry_total", "counter", ("sink",), "Sink writes retried."),
    Series("noetl_task_retries_total", "counter", (*_OF_STEP, "kind"), "Tasks retried."),
    Series("noetl_plugin_errors_total", "counter", ("kind", "error_class"), "Failed attempts."),
    Series("noetl_timeouts_total", "counter", (*_OF_STEP, "of"), "Timeouts."),
    Series("noetl_cancellations_total", "counter", ("workflow", "what"), "Cancellations."),
    Series("noetl_reports_late_total", "counter", _WORKFLOW, "Reports on a lost lease."),
    Series("noetl_dlq_total", "counter", ("kind", "sink"), "Dead letters, new or repeated."),
    Series("noetl_dlq_closed_total", "counter", ("status",), "Dead letters replayed or discarded."),
    Series("dlq_entries", "gauge", ("status",), "Dead letters by status."),
    Series("noetl_task_queue_inflight", "gauge", ("pool",), "Work queued or leased."),
    Series("noetl_queue_depth", "gauge", ("pool",), "Work queued."),
    Series("noetl_queue_age_seconds", "gauge", ("pool",), "Age of the oldest queued work."),
    Series("noetl_commit_messages", "histogram", (), "Messages in a transaction.", buckets=_BATCH),
    Series("noetl_commit_duration_seconds", "histogram", (), "Duration of a transaction.", buckets=_COMMIT),
    Series("noetl_state_cache_total", "counter", ("outcome",), "States of executions, in memory or not."),
    Series("noetl_replay_duration_seconds", "histogram", (), "Time to read and fold a state.", buckets=_SINK),
    Series("noetl_lease_expiries_total", "counter", (), "Leases that ran out."),
    Series("noetl_trigger_lag_seconds", "histogram", ("kind",), "Time from due to fired.", buckets=_LAG),
    Series("noetl_sse_followers", "gauge", (), "Open event streams."),
    Series("noetl_key_rotations_total", "counter", (), "Rotations of the master key."),
    Series("noetl_messages_unanswered", "gauge", (), "Messages waiting for a commit."),
    Series("noetl_workers", "gauge", (), "Workers connected to this server."),
    Series(
        "noetl_worker_heartbeat_timestamp", "gauge", ("worker_id",), "When a worker that has not left was last seen."
    ),
    Series("noetl_outbox_attempts_total", "counter", ("target", "ok"), "Outbox delivery attempts."),
    Series("noetl_outbox_messages", "gauge", ("state",), "Outbox messages not delivered."),
    Series("noetl_export_events_total", "counter", ("target",), "Events exported."),
    Series("noetl_export_failures_total", "counter", ("target",), "Batches of an export that failed."),
    Series("noetl_export_lag_seconds", "gauge", ("target",), "Age of the oldest event that is not exported."),
    Series("noetl_worker_tasks_started_total", "counter", ("kind", "pool"), "Attempts of tasks started.", "worker"),
    Series(
        "noetl_worker_tasks_completed_total", "counter", ("kind", "pool", "ok"), "Attempts of tasks ended.", "worker"
    ),
    Series(
        "noetl_worker_sink_duration_seconds", "histogram", ("sink",), "Duration of a sink write, in loops too.", "worker",
        _SINK,
    ),
    Series(
        "noetl_worker_task_duration_seconds", "histogram", ("kind",), "Duration of an attempt.", "worker", _TASK,
        {"http": _HTTP, "python": _PYTHON, **dict.fromkeys(_DATABASES, _SINK)},
    ),
)  # fmt: skip
SERIES: Final[Mapping[str, Series]] = {one.name: one for one in ALL}
