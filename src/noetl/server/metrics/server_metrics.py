"""Prometheus metrics of this server: `/metrics`.

Every counter is read off the commits that this server has applied. Commits are counted in batches, at the latest when the
page is read; the depth of the queue is read from the store at that time. Tested in tests/unit/server/metrics/test_server_metrics.py and
tests/server/http/test_serve.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from noetl.model.events import Event
from noetl.model.letters import OPEN, STATUSES
from noetl.model.outcome import Outcome
from noetl.observe.counters import Counted, Counts, Levels, Spread, page
from noetl.ports import Commit
from noetl.ports.outbox import OutboxMessage
from noetl.server.metrics.task_metrics import TASK_EVENTS, PlanOf, TaskMetrics

_STATUSES = {"completed": "ok", "partial": "partial", "failed": "fail", "cancelled": "canceled"}
_MAX_RUNS = 10_000  # step-runs whose start is remembered
_MAX_UNCOUNTED = 20  # commits: many of them would push what is in use out of the processor's cache
_Run = tuple[str, str | None]  # execution, step-run


class Readings(NamedTuple):
    """What is read when the page is, rather than counted."""

    depths: Sequence[Mapping[str, Any]] = ()  # of queues
    unanswered: int = 0  # messages
    workers: int = 0  # connected
    outbox: Mapping[str, int] = {}
    letters: Mapping[str, int] = {}
    seen: Mapping[str, int] = {}  # when each worker was last seen
    parked: Mapping[str, int] = {}  # steps, by path of the playbook
    followers: int = 0  # open event streams
    rotations: int = 0  # of the master key
    now: int = 0


class Metrics:
    """The counters of one server, and of the workers in its process."""

    def __init__(self, plan_of: PlanOf | None = None, also: Iterable[Counted] = (), *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._tasks = TaskMetrics(plan_of)
        self._started = Counts("noetl_executions_started_total")
        self._completed = Counts("noetl_executions_completed_total")
        self._repaired = Counts("noetl_executions_repaired_total")
        self._calls = Counts("noetl_step_calls_total")
        self._runs = Counts("noetl_step_runs_total")
        self._durations = Spread("noetl_step_duration_seconds")
        self._waits = Spread("noetl_claim_wait_seconds")
        self._events = Counts("noetl_events_total")
        self._items = Counts("noetl_loop_items_total")
        self._ended_items = Counts("noetl_loop_completed_total")
        self._whens = Counts("noetl_when_eval_total")
        self._edges = Counts("noetl_edge_eval_total")
        self._late = Counts("noetl_reports_late_total")
        self._letters = Counts("noetl_dlq_total")
        self._closed = Counts("noetl_dlq_closed_total")
        self._sent = Counts("noetl_outbox_attempts_total")
        self._counters: tuple[Counted, ...] = (
            self._started, self._completed, self._repaired, self._calls, self._runs, self._durations, self._waits,
            self._events, self._items, self._ended_items, self._whens, self._edges, self._late, self._letters,
            self._closed, self._sent, *self._tasks.counted, *also,
        )  # fmt: skip
        self._scheduled_at: dict[_Run, int] = {}
        self._unstarted: dict[_Run, int] = {}  # likewise, until a worker starts the step-run
        self._uncounted: list[Commit] = []

    def committed(self, commits: Sequence[Commit]) -> None:
        """Count commits, at the latest when the page is read."""
        if not self.is_on:
            return
        self._uncounted += commits
        if len(self._uncounted) >= _MAX_UNCOUNTED:
            self._count()

    def _count(self) -> None:
        commits, self._uncounted = self._uncounted, []
        for commit in commits:
            workflow, playbook = commit.projection.get("path", ""), commit.projection.get("playbook", "")
            if commit.events:
                self._events[workflow,] += len(commit.events)
            for event in commit.events:
                handler = _HANDLERS.get(event.event_type)
                if handler is not None:
                    handler(self, workflow, playbook, event)
            if commit.letters:
                self._count_letters(commit)
        for known in (self._scheduled_at, self._unstarted):
            while len(known) > _MAX_RUNS:
                del known[next(iter(known))]

    def _count_letters(self, commit: Commit) -> None:
        for change in commit.letters:
            if change.letter is not None:
                self._letters[change.letter.tool_kind or "", change.letter.sink_id or ""] += 1
            elif change.status not in OPEN:
                self._closed[change.status,] += 1

    def sent(self, message: OutboxMessage, outcome: Outcome) -> None:
        """Count an attempt to deliver a message."""
        self._sent[message.target, "true" if outcome.error is None else "false"] += 1

    def page(self, now: Readings) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        self._count()
        rotations = Counts("noetl_key_rotations_total")
        rotations[()] = now.rotations
        return page((*self._counters, rotations, *_gauges(now)))

    # One method per type of event

    def _execution_started(self, workflow: str, _playbook: str, _event: Event) -> None:
        self._started[workflow,] += 1

    def _execution_ended(self, workflow: str, _playbook: str, event: Event) -> None:
        status = str(event.status or event.payload.get("status", ""))
        self._completed[workflow, _STATUSES.get(status, status)] += 1

    def _step_scheduled(self, _workflow: str, _playbook: str, event: Event) -> None:
        run = event.execution_id, event.step_run_id
        self._unstarted[run] = event.timestamp
        self._scheduled_at.setdefault(run, event.timestamp)  # a run that was suspended is scheduled again

    def _step_started(self, workflow: str, _playbook: str, event: Event) -> None:
        since = self._unstarted.pop((event.execution_id, event.step_run_id), None)
        if since is not None:
            self._waits.observe((workflow, event.entity_id), max(0, event.timestamp - since) / 1000)

    def _step_ended(self, workflow: str, _playbook: str, event: Event) -> None:
        self._runs[workflow, event.entity_id, "false" if event.event_type == "step.failed" else "true"] += 1
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
        outcome = "error" if event.payload.get("errors") else "true" if event.payload.get("allow") else "false"
        self._whens[workflow, event.entity_id, outcome] += 1

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


def _gauges(now: Readings) -> Iterable[Levels]:
    letters, outbox = Levels("dlq_entries"), Levels("noetl_outbox_messages")
    letters.update({(status,): now.letters.get(status, 0) for status in STATUSES})
    outbox.update({(state,): now.outbox.get(state, 0) for state in ("pending", "dead")})
    inflight, depth, age = (
        Levels(name) for name in ("noetl_task_queue_inflight", "noetl_queue_depth", "noetl_queue_age_seconds")
    )
    for row in now.depths:
        pool = (str(row.get("pool", "")) or "default",)
        queued, oldest = int(row.get("queued", 0)), row.get("oldest")
        depth[pool] = depth.get(pool, 0) + queued
        inflight[pool] = inflight.get(pool, 0) + queued + int(row.get("leased", 0))
        age[pool] = max(age.get(pool, 0), 0 if oldest is None else (now.now - int(oldest)) / 1000)
    unanswered, workers = Levels("noetl_messages_unanswered"), Levels("noetl_workers")
    unanswered[()], workers[()] = now.unanswered, now.workers
    seen = Levels("noetl_worker_heartbeat_timestamp")
    seen.update({(worker_id,): at / 1000 for worker_id, at in now.seen.items()})
    parked, followers = Levels("parked_steps_gauge"), Levels("noetl_sse_followers")
    parked.update({(path,): count for path, count in now.parked.items()})
    followers[()] = now.followers
    return letters, outbox, inflight, depth, age, unanswered, workers, seen, parked, followers
