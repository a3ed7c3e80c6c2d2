"""Write alert rules and dashboards into deploy/, from the table of series.

    python scripts/deploy.py [--check]

Every expression names series and labels of `noetl.observe.series`; tests/observe/ checks them with promtool and in a real
Prometheus.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from noetl.observe.alerts import EXEMPLARS

ROOT = Path(__file__).resolve().parents[1]
RUNBOOKS = "docs/how-to/runbooks.md"
RUNBOOK_OF = {
    "HighDLQGrowth": "docs/how-to/runbooks/dead-letters.md",
    "StepFailureRateHigh": "docs/how-to/runbooks/dead-letters.md",
    "SinkErrorRateHigh": "docs/how-to/runbooks/dead-letters.md",
    "WorkerStalled": "docs/how-to/runbooks/worker-loss.md",
    "LeasesLost": "docs/how-to/runbooks/worker-loss.md",
    "ExecutionSLAExceeded": "docs/how-to/runbooks/stuck-execution.md",
    "QueueStalled": "docs/how-to/runbooks/slow-engine.md",
}  # of an alert; any other one: the list of runbooks


class Alert(NamedTuple):
    """Condition that alerts an operator after it held for a while."""

    name: str
    expr: str
    hold: str  # how long it must be true
    summary: str
    description: str
    severity: str = "warning"


class Panel(NamedTuple):
    """Graph on a dashboard: a title, and an expression with the legend of its lines."""

    title: str
    lines: Mapping[str, str]  # expression by its legend
    unit: str = "short"


def share(name: str, by: str, bad: str, window: str) -> str:
    """Return the share of a counter's events that have a label."""
    return f"sum by ({by}) (rate({name}{{{bad}}}[{window}])) / sum by ({by}) (rate({name}[{window}]))"


def p95(name: str, by: str, window: str) -> str:
    return f"histogram_quantile(0.95, sum by ({by}, le) (rate({name}_bucket[{window}])))"


ALERTS = (
    Alert(
        "HighDLQGrowth", "sum by (kind, sink) (rate(noetl_dlq_total[5m])) > 10", "5m",
        "Dead letters grow rapidly", "{{ $value | humanize }} dead letters a second of kind {{ $labels.kind }}.",
    ),
    Alert(
        "StepFailureRateHigh", share("noetl_step_runs_total", "workflow, step", 'ok="false"', "10m") + " > 0.1", "10m",
        "Step {{ $labels.step }} of {{ $labels.workflow }} fails frequently",
        "{{ $value | humanizePercentage }} of its runs failed in the last ten minutes.",
    ),
    Alert(
        "WorkerStalled", "time() - max by (worker_id) (noetl_worker_heartbeat_timestamp) > 60", "1m",
        "Worker {{ $labels.worker_id }} stalled", "It has not been seen for {{ $value | humanizeDuration }}.", "critical",
    ),
    Alert(
        "SinkErrorRateHigh", share("noetl_sink_tasks_completed_total", "sink", 'ok="false"', "10m") + " > 0.05", "10m",
        "Writes to {{ $labels.sink }} fail", "{{ $value | humanizePercentage }} of them failed in the last ten minutes.",
    ),
    # A quantile is never above the last bucket, which ends at 300 s.
    Alert(
        "ExecutionSLAExceeded", p95("noetl_step_duration_seconds", "workflow, step", "10m") + " >= 300", "5m",
        "Step {{ $labels.step }} of {{ $labels.workflow }} takes too long",
        "One run in twenty took five minutes or longer.",
    ),
    Alert(
        "QueueStalled", "max by (pool) (noetl_queue_age_seconds) > 300", "5m",
        "Work of pool {{ $labels.pool }} waits", "The oldest waits for {{ $value | humanizeDuration }}. Are its workers up?",
        "critical",
    ),
    Alert(
        "LeasesLost", "sum by (workflow) (rate(noetl_reports_late_total[10m])) > 0.1", "10m",
        "Workers of {{ $labels.workflow }} lose their leases",
        "{{ $value | humanize }} reports a second came after their lease was lost: workers are overloaded or cut off.",
    ),
    Alert(
        "ExportLagging", "max by (target) (noetl_export_lag_seconds) > 300", "5m",
        "The export to {{ $labels.target }} lags", "It is {{ $value | humanizeDuration }} behind: see the server log.",
    ),
    Alert(
        "OutboxStuck", 'max(noetl_outbox_messages{state="dead"}) > 0', "5m",
        "Outbox messages were given up", "{{ $value }} messages: `noetl outbox list --state dead`.",
    ),
)  # fmt: skip


def by(label: str, expr: str) -> dict[str, str]:
    return {f"{{{{{label}}}}}": expr}


DASHBOARDS: Mapping[str, tuple[str, Sequence[Panel]]] = {
    "executions": ("NoETL: executions", (
        Panel("Executions ended", by("status", "sum by (status) (rate(noetl_executions_completed_total[5m]))"), "ops"),
        Panel("Executions started", by("workflow", "sum by (workflow) (rate(noetl_executions_started_total[5m]))"), "ops"),
        Panel(
            "Started and not ended, last hour",
            by("workflow", "sum by (workflow) (increase(noetl_executions_started_total[1h])) - sum by (workflow) (increase(noetl_executions_completed_total[1h]))"),
        ),
        Panel("Step duration, p95", by("step", p95("noetl_step_duration_seconds", "step", "5m")), "s"),
        Panel("Top failing steps, 24 hours", by("step", 'topk(10, sum by (step) (increase(noetl_step_runs_total{ok="false"}[24h])))')),
        Panel("Loop items ended", by("ok", "sum by (ok) (rate(noetl_loop_completed_total[5m]))"), "ops"),
    )),
    "workers": ("NoETL: workers and queues", (
        Panel("Tasks ended by pool", by("pool}} ok={{ok", "sum by (pool, ok) (rate(noetl_worker_tasks_completed_total[5m]))"), "ops"),
        Panel("Running tasks", by("kind", "sum by (kind) (noetl_worker_tasks_started_total) - sum by (kind) (noetl_worker_tasks_completed_total)")),
        Panel(
            "Average task duration",
            by("kind", "sum by (kind) (rate(noetl_worker_task_duration_seconds_sum[5m])) / sum by (kind) (rate(noetl_worker_task_duration_seconds_count[5m]))"),
            "s",
        ),
        Panel("Queue depth", by("pool", "max by (pool) (noetl_queue_depth)")),
        Panel("Age of the oldest queued work", by("pool", "max by (pool) (noetl_queue_age_seconds)"), "s"),
        Panel("Since the last heartbeat", by("worker_id", "time() - max by (worker_id) (noetl_worker_heartbeat_timestamp)"), "s"),
        Panel("Dead letters, new", by("kind", "sum by (kind) (rate(noetl_dlq_total[5m]))"), "ops"),
        Panel("Dead letters", by("status", "max by (status) (dlq_entries)")),
    )),
    "sinks": ("NoETL: sinks", (
        Panel("Share of failed writes", by("sink", share("noetl_sink_tasks_completed_total", "sink", 'ok="false"', "5m")), "percentunit"),
        Panel("Duration of a write, p95", by("sink", p95("noetl_sink_duration_seconds", "sink", "5m")), "s"),
        Panel("Share of upserts", by("sink", share("noetl_sink_mode_total", "sink", 'mode="upsert"', "5m")), "percentunit"),
        Panel("Retries", by("sink", "sum by (sink) (rate(noetl_sink_retry_total[5m]))"), "ops"),
        Panel("Write attempts", by("sink", "sum by (sink) (rate(noetl_sink_dispatch_total[5m]))"), "ops"),
    )),
    "guards": ("NoETL: gates and arcs", (
        Panel("Admission conditions", by("outcome", "sum by (outcome) (rate(noetl_when_eval_total[5m]))"), "ops"),
        Panel("Arcs", by("outcome", "sum by (outcome) (rate(noetl_edge_eval_total[5m]))"), "ops"),
        Panel("Timeouts", by("of", "sum by (of) (rate(noetl_timeouts_total[5m]))"), "ops"),
        Panel("Cancellations", by("what", "sum by (what) (rate(noetl_cancellations_total[5m]))"), "ops"),
    )),
    "engine": ("NoETL: engine", (
        Panel("Messages waiting for a commit", by("instance", "noetl_messages_unanswered")),
        Panel("Workers connected", by("instance", "noetl_workers")),
        Panel("Reports on a lost lease", by("workflow", "sum by (workflow) (rate(noetl_reports_late_total[5m]))"), "ops"),
        Panel("Executions repaired", by("what", "sum by (what) (increase(noetl_executions_repaired_total[1h]))")),
        Panel("Failed attempts", by("kind}} {{error_class", "sum by (kind, error_class) (rate(noetl_plugin_errors_total[5m]))"), "ops"),
        Panel("Outbox messages", by("state", "max by (state) (noetl_outbox_messages)")),
        Panel("Lag of exports", by("target", "max by (target) (noetl_export_lag_seconds)"), "s"),
    )),
}  # fmt: skip


def payload(name: str) -> dict[str, str]:
    """Return what an alert says of its subject, with a link to an execution.

    The link needs the address of the server as an external label of Prometheus, `noetl_url`.
    """
    labels = EXEMPLARS[name]
    found = {"workflow_ref": "{{ $labels.workflow }}"} if "workflow" in labels else {}
    found |= {"step_id": "{{ $labels.step }}"} if "step" in labels else {}
    rate = {"error_rate": "{{ $value }}"} if name.endswith("RateHigh") else {}
    query = "&".join(
        [f"{label}={{{{ $labels.{label} | urlquery }}}}" for label in labels]
        + [f"{key}={value}" for key, value in rate.items()]
    )
    link = f"{{{{ $externalLabels.noetl_url }}}}/api/alerts/{name}" + (f"?{query}" if query else "")
    return {**found, **rate, "link": link}


def rules() -> str:
    """Return the alert rules as Prometheus reads them."""
    written = [
        {
            "alert": one.name,
            "expr": one.expr,
            "for": one.hold,
            "labels": {"severity": one.severity},
            "annotations": {
                "summary": one.summary,
                "description": one.description,
                **payload(one.name),
                "runbook": RUNBOOK_OF.get(one.name, RUNBOOKS),
            },
        }
        for one in ALERTS
    ]
    text = yaml.safe_dump({"groups": [{"name": "noetl", "rules": written}]}, sort_keys=False, width=120)
    return f"# Written by scripts/deploy.py; do not edit.\n{text}"


def dashboard(name: str, title: str, panels: Sequence[Panel]) -> str:
    """Return a dashboard as Grafana imports it: two panels in a row."""
    source = {"type": "prometheus", "uid": "${source}"}
    drawn: list[dict[str, Any]] = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": one.title,
            "datasource": source,
            "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
            "fieldConfig": {"defaults": {"unit": one.unit, "min": 0}, "overrides": []},
            "targets": [
                {"refId": "ABCDEF"[at], "datasource": source, "expr": expr, "legendFormat": legend}
                for at, (legend, expr) in enumerate(one.lines.items())
            ],
        }
        for number, one in enumerate(panels)
    ]
    choice = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    about = {"uid": f"noetl-{name}", "title": title, "tags": ["noetl"], "schemaVersion": 39, "refresh": "30s"}
    made = {**about, "time": {"from": "now-6h", "to": "now"}, "templating": {"list": [choice]}, "panels": drawn}
    return json.dumps(made, indent=2) + "\n"


def files() -> dict[str, str]:
    """Return every file by its path below the project."""
    found = {f"deploy/grafana/{name}.json": dashboard(name, *made) for name, made in DASHBOARDS.items()}
    return {"deploy/prometheus/alerts.yaml": rules(), **found}


def main() -> None:
    stale = [path for path, text in files().items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    if "--check" in sys.argv[1:]:
        sys.exit(f"stale: {', '.join(stale)}; run `python scripts/deploy.py`" if stale else 0)
    for path, text in files().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
    print(f"{len(files())} files in {ROOT / 'deploy'}, {len(stale)} of them changed")


if __name__ == "__main__":
    main()
