"""Prometheus metrics of this server: `/metrics`.

Every counter is read off the commits that this server has applied. Commits are counted in batches, at the latest when the
page is read; the depth of the queue is read from the store at that time. Tested in tests/unit/server/metrics/test_server_metrics.py and
tests/server/http/test_serve.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric

from noetl.model.events import Event
from noetl.model.letters import OPEN, STATUSES
from noetl.model.outcome import Outcome
from noetl.ports import Commit
from noetl.ports.outbox import OutboxMessage
from noetl.server.metrics.counters import Counts, Spread
from noetl.server.metrics.task_metrics import TASK_EVENTS, PlanOf, TaskMetrics

_STATUSES = {"completed": "ok", "partial": "partial", "failed": "fail", "cancelled": "canceled"}
_STEP_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_MAX_RUNS = 10_000  # step-runs whose start is remembered
_MAX_UNCOUNTED = 200  # commits


class Metrics:
    """The counters of one server."""

    def __init__(self, plan_of: PlanOf | None = None) -> None:
        self.registry = registry = CollectorRegistry()
        self._tasks = TaskMetrics(plan_of)
        self._counters: list[Counts | Spread] = [*self._tasks.counted]
        registry.register(self)

        def counter(name: str, text: str, *labels: str) -> Counts:
            made = Counts(name, text, labels)
            self._counters.append(made)
            return made

        self._started = counter("noetl_executions_started_total", "Executions started.", "workflow")
        self._completed = counter("noetl_executions_completed_total", "Executions ended.", "workflow", "status")
        self._calls = counter("noetl_step_calls_total", "Tokens sent to a step.", "workflow", "step")
        self._runs = counter("noetl_step_runs_total", "Step-runs started by a worker.", "workflow", "step")
        duration = "noetl_step_duration_seconds", "Time from scheduled to ended.", ("workflow", "step")
        self._durations = Spread(*duration, _STEP_BUCKETS)
        self._counters.append(self._durations)
        self._items = counter("noetl_loop_items_total", "Loop items.", "workflow", "step")
        self._ended_items = counter("noetl_loop_completed_total", "Loop items ended.", "workflow", "step", "ok")
        self._whens = counter("noetl_when_eval_total", "Admission conditions.", "workflow", "step", "outcome")
        self._edges = counter("noetl_edge_eval_total", "Arcs evaluated.", "workflow", "from", "to", "outcome")
        self._late = counter("noetl_reports_late_total", "Reports on a lost lease.", "workflow")
        self._repaired = counter("noetl_executions_repaired_total", "Executions repaired.", "workflow", "what")
        self._queue = Gauge("noetl_task_queue_inflight", "Work queued or leased.", ("pool",), registry=registry)
        self._letters = counter("noetl_dlq_total", "Dead letters, new or repeated.", "kind", "sink")
        self._closed = counter("noetl_dlq_closed_total", "Dead letters replayed or discarded.", "status")
        self._open = Gauge("dlq_entries", "Dead letters by status.", ("status",), registry=registry)
        self._waiting = Gauge("noetl_messages_unanswered", "Messages waiting for a commit.", registry=registry)
        self._workers = Gauge("noetl_workers", "Workers connected to this server.", registry=registry)
        self._sent = counter("noetl_outbox_attempts_total", "Outbox delivery attempts.", "target", "ok")
        self._outbox = Gauge("noetl_outbox_messages", "Outbox messages not delivered.", ("state",), registry=registry)
        self._scheduled_at: dict[tuple[str, str | None], int] = {}
        self._uncounted: list[Commit] = []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics; called by the registry."""
        self._count()
        for counter in self._counters:
            yield from counter.collect()

    def committed(self, commits: Sequence[Commit]) -> None:
        """Count commits, at the latest when the page is read."""
        self._uncounted += commits
        if len(self._uncounted) >= _MAX_UNCOUNTED:
            self._count()

    def _count(self) -> None:
        commits, self._uncounted = self._uncounted, []
        for commit in commits:
            workflow, playbook = commit.projection.get("path", ""), commit.projection.get("playbook", "")
            for event in commit.events:
                handler = _HANDLERS.get(event.event_type)
                if handler is not None:
                    handler(self, workflow, playbook, event)
            if commit.letters:
                self._count_letters(commit)
        while len(self._scheduled_at) > _MAX_RUNS:
            del self._scheduled_at[next(iter(self._scheduled_at))]

    def _count_letters(self, commit: Commit) -> None:
        for change in commit.letters:
            if change.letter is not None:
                self._letters[change.letter.tool_kind or "", change.letter.sink_id or ""] += 1
            elif change.status not in OPEN:
                self._closed[change.status,] += 1

    def sent(self, message: OutboxMessage, outcome: Outcome) -> None:
        """Count an attempt to deliver a message."""
        self._sent[message.target, "true" if outcome.error is None else "false"] += 1

    def page(
        self,
        depths: Iterable[Mapping[str, Any]],
        waiting: int,
        workers: int,
        outbox: Mapping[str, int],
        letters: Mapping[str, int],
    ) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        for status in STATUSES:
            self._open.labels(status).set(letters.get(status, 0))
        for state in ("pending", "dead"):
            self._outbox.labels(state).set(outbox.get(state, 0))
        self._queue.clear()
        sums: dict[str, int] = {}
        for row in depths:
            pool = str(row.get("pool", "")) or "default"
            sums[pool] = sums.get(pool, 0) + int(row.get("queued", 0)) + int(row.get("leased", 0))
        for pool, number in sums.items():
            self._queue.labels(pool).set(number)
        self._waiting.set(waiting)
        self._workers.set(workers)
        return generate_latest(self.registry)

    # One method per type of event

    def _execution_started(self, workflow: str, _playbook: str, _event: Event) -> None:
        self._started[workflow,] += 1

    def _execution_ended(self, workflow: str, _playbook: str, event: Event) -> None:
        status = str(event.status or event.payload.get("status", ""))
        self._completed[workflow, _STATUSES.get(status, status)] += 1

    def _step_scheduled(self, _workflow: str, _playbook: str, event: Event) -> None:
        self._scheduled_at[event.execution_id, event.step_run_id] = event.timestamp

    def _step_started(self, workflow: str, _playbook: str, event: Event) -> None:
        self._runs[workflow, event.entity_id] += 1

    def _step_ended(self, workflow: str, _playbook: str, event: Event) -> None:
        since = self._scheduled_at.pop((event.execution_id, event.step_run_id), None)
        if since is not None:
            self._durations.observe((workflow, event.entity_id), (event.timestamp - since) / 1000)

    def _step_failed(self, workflow: str, playbook: str, event: Event) -> None:
        self._step_ended(workflow, playbook, event)
        self._tasks.count(workflow, playbook, event)

    def _next_evaluated(self, workflow: str, _playbook: str, event: Event) -> None:
        taken = event.payload.get("taken", ())
        for arc in event.payload.get("arcs", ()):
            outcome = "error" if arc.get("error") else "taken" if arc.get("arc") in taken else "skipped"
            self._edges[workflow, event.entity_id, str(arc.get("step", "")), outcome] += 1

    def _token_created(self, workflow: str, _playbook: str, event: Event) -> None:
        self._calls[workflow, str(event.payload.get("step", event.entity_id))] += 1

    def _loop_started(self, workflow: str, _playbook: str, event: Event) -> None:
        total = event.payload.get("total", len(event.payload.get("items") or ()))
        self._items[workflow, event.entity_id] += total if isinstance(total, int) else 0

    def _item_ended(self, workflow: str, playbook: str, event: Event) -> None:
        ok = "true" if event.event_type == "loop.iteration.done" else "false"
        self._ended_items[workflow, event.entity_id, ok] += 1
        self._tasks.count(workflow, playbook, event)

    def _task_done(self, workflow: str, playbook: str, event: Event) -> None:
        if self._tasks.has_sinks(playbook):
            self._tasks.count(workflow, playbook, event)

    def _task(self, workflow: str, playbook: str, event: Event) -> None:
        self._tasks.count(workflow, playbook, event)

    def _admission_evaluated(self, workflow: str, _playbook: str, event: Event) -> None:
        self._whens[workflow, event.entity_id, "true" if event.payload.get("allow") else "false"] += 1

    def _report_late(self, workflow: str, _playbook: str, _event: Event) -> None:
        self._late[workflow,] += 1

    def _repair(self, workflow: str, _playbook: str, event: Event) -> None:
        for what in [*event.payload] or ["state"]:
            self._repaired[workflow, what] += 1


_Handler = Callable[[Metrics, str, str, Event], None]
_HANDLERS: dict[str, _Handler] = dict.fromkeys(TASK_EVENTS, Metrics._task) | {
    "playbook.started": Metrics._execution_started,
    "playbook.finished": Metrics._execution_ended,
    "step.scheduled": Metrics._step_scheduled,
    "step.started": Metrics._step_started,
    "step.done": Metrics._step_ended,
    "step.failed": Metrics._step_failed,
    "loop.done": Metrics._step_ended,
    "next.evaluated": Metrics._next_evaluated,
    "token.created": Metrics._token_created,
    "loop.started": Metrics._loop_started,
    "loop.iteration.done": Metrics._item_ended,
    "loop.iteration.failed": Metrics._item_ended,
    "task.done": Metrics._task_done,
    "policy.admit.evaluated": Metrics._admission_evaluated,
    "report.late": Metrics._report_late,
    "execution.repaired": Metrics._repair,
}
