"""Counts what this server does, in the words of its operators: `/metrics`.

Everything is read off the commits that this server has applied, some at a time: nobody waits for a number before somebody
looks. The queue's depth is asked of the store then. Tested in tests/unit/server/test_metrics.py and
tests/server/test_serve.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.core import Metric

from noetl.model.events import Event
from noetl.model.letters import OPEN, STATUSES
from noetl.model.outcome import Outcome
from noetl.ports import Commit
from noetl.ports.outbox import OutboxMessage
from noetl.server.counts import Counts, Spread
from noetl.server.task_metrics import TASK_EVENTS, PlanOf, TaskMetrics

_STATUSES = {"completed": "ok", "partial": "partial", "failed": "fail", "cancelled": "canceled"}
_STEP_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_MOST_RUNS = 10_000  # whose start is remembered
_MOST_UNCOUNTED = 500  # commits and their events
_MOST_SHAPES = 1_000
_MOST_ALIKE = 2_000
_LONGEST_SHAPE = 32  # longer commits are hardly ever alike
_type_of = attrgetter("event_type")
_events_of = attrgetter("events")
_Adds = list[tuple[Counts, tuple[str, ...]]]
_SPANS = frozenset(("step.scheduled", "step.done", "step.failed", "loop.done"))


class _Alike:
    """Commits that add the same: of one shape and step, with the very same word about where to go on, as plans have ready."""

    def __init__(self, word: Mapping[str, Any], adds: _Adds) -> None:
        self.word = word  # kept, so that no other can be taken for it
        self.adds = adds
        self.count = 0  # those that are not added yet


class _Shape(NamedTuple):
    """Where in a commit what is that is counted: the same wherever the events are of the same types."""

    started: list[int]
    spans: list[tuple[int, bool]]  # where a step-run begins or, True, ends
    routed: list[int]
    tokens: list[int]
    tasks: list[int]  # that went well
    others: Sequence[tuple[int, Callable[[Metrics, str, str, Event], None]]]
    executions: list[tuple[int, Callable[[Metrics, str, Event], None]]]  # where one begins or ends
    word: int | None  # where the only word about where to go on is, in a commit of one step and nothing special
    alike: dict[tuple[str, str, int], _Alike]  # by workflow, step and the word's identity


class Metrics:
    """The counters of one server."""

    def __init__(self, plan_of: PlanOf | None = None) -> None:
        self.registry = registry = CollectorRegistry()
        self._tasks = TaskMetrics(plan_of)
        self._counted: list[Counts | Spread] = [*self._tasks.counted]
        registry.register(self)

        def counter(name: str, text: str, *labels: str) -> Counts:
            made = Counts(name, text, labels)
            self._counted.append(made)
            return made

        self._started = counter("noetl_executions_started_total", "Executions started.", "workflow")
        self._completed = counter("noetl_executions_completed_total", "Executions ended.", "workflow", "status")
        self._calls = counter("noetl_step_calls_total", "Tokens sent to a step.", "workflow", "step")
        self._runs = counter("noetl_step_runs_total", "Step-runs that a worker began.", "workflow", "step")
        took = "noetl_step_duration_seconds", "From scheduled to ended.", ("workflow", "step")
        self._took = Spread(*took, _STEP_BUCKETS)
        self._counted.append(self._took)
        self._items = counter("noetl_loop_items_total", "Items of loops.", "workflow", "step")
        self._ended_items = counter("noetl_loop_completed_total", "Items that ended.", "workflow", "step", "ok")
        self._whens = counter("noetl_when_eval_total", "Conditions of gates.", "workflow", "step", "outcome")
        self._edges = counter("noetl_edge_eval_total", "Arcs looked at.", "workflow", "from", "to", "outcome")
        self._late = counter("noetl_reports_late_total", "Reports from workers that had lost the lease.", "workflow")
        self._repaired = counter(
            "noetl_executions_repaired_total", "Executions with rows put back.", "workflow", "what"
        )
        self._queue = Gauge("noetl_task_queue_inflight", "Work that is queued or leased.", ("pool",), registry=registry)
        self._letters = counter("noetl_dlq_total", "Dead letters, new or again.", "kind", "sink")
        self._closed = counter("noetl_dlq_closed_total", "Dead letters that were replayed or discarded.", "status")
        self._open = Gauge("dlq_entries", "Dead letters that there are.", ("status",), registry=registry)
        self._waiting = Gauge("noetl_messages_unanswered", "Messages that wait for a commit.", registry=registry)
        self._workers = Gauge("noetl_workers", "Workers that speak to this server.", registry=registry)
        self._sent = counter(
            "noetl_outbox_attempts_total", "Attempts to deliver messages of the outbox.", "target", "ok"
        )
        self._outbox = Gauge("noetl_outbox_messages", "Messages that are not delivered.", ("state",), registry=registry)
        self._begun: dict[tuple[str, str | None], int] = {}
        self._uncounted: list[Commit] = []
        self._size = 0  # how many those and their events are
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._alike = 0  # kinds of commits that are remembered

    def collect(self) -> Iterator[Metric]:
        """Give what was counted, to the library."""
        self._count()
        self._settle()
        for counted in self._counted:
            yield from counted.collect()

    def committed(self, commits: Sequence[Commit]) -> None:
        """Count what commits hold, some time before somebody looks."""
        self._uncounted += commits
        self._size += len(commits) + sum(map(len, map(_events_of, commits)))
        if self._size >= _MOST_UNCOUNTED:
            self._count()

    def _count(self) -> None:
        """Count what was committed since the last time; of commits that are alike only how many there are."""
        commits, self._uncounted, self._size = self._uncounted, [], 0
        took, begun = self._took, self._begun
        for commit in commits:
            events, workflow = commit.events, commit.projection.get("path", "")
            types = tuple(map(_type_of, events))
            shape = self._shapes.get(types) or self._shape(types)
            for place, is_end in shape.spans:
                event = events[place]
                if not is_end:
                    begun[event.execution_id, event.step_run_id] = event.timestamp
                elif (since := begun.pop((event.execution_id, event.step_run_id), None)) is not None:
                    took.observe((workflow, event.entity_id), (event.timestamp - since) / 1000)
            for place, count in shape.executions:
                count(self, workflow, events[place])
            if commit.letters:
                self._count_letters(commit)
            if shape.word is not None:
                event = events[shape.word]
                alike = shape.alike.get((workflow, event.entity_id, id(event.payload)))
                if alike is not None:
                    alike.count += 1
                    continue
            self._count_one(commit, workflow, shape)
        while len(begun) > _MOST_RUNS:
            del begun[next(iter(begun))]

    def _count_one(self, commit: Commit, workflow: str, shape: _Shape) -> None:
        """Count what a commit holds, and remember it for those that are alike."""
        events, playbook = commit.events, commit.projection.get("playbook", "")
        adds = self._adds(events, workflow, shape)
        for counts, labels in adds:
            counts[labels] += 1
        for place, handle in shape.others:
            handle(self, workflow, playbook, events[place])
        if shape.tasks and self._tasks.has_sinks(playbook):
            for place in shape.tasks:
                self._tasks.count(workflow, playbook, events[place])
        elif shape.word is not None:
            if self._alike >= _MOST_ALIKE:
                self._settle(forget=True)
            event = events[shape.word]
            shape.alike[workflow, event.entity_id, id(event.payload)] = _Alike(event.payload, adds)
            self._alike += 1

    def _adds(self, events: Sequence[Event], workflow: str, shape: _Shape) -> _Adds:
        """Give what a commit adds one to: runs that began, arcs that were looked at, tokens that were sent."""
        found: _Adds = [(self._runs, (workflow, events[place].entity_id)) for place in shape.started]
        for place in shape.routed:
            step, word = events[place].entity_id, events[place].payload
            taken = word.get("taken", ())
            for arc in word.get("arcs", ()):
                outcome = "error" if arc.get("error") else "taken" if arc.get("arc") in taken else "skipped"
                found.append((self._edges, (workflow, step, str(arc.get("step", "")), outcome)))
        for place in shape.tokens:
            step = str(events[place].payload.get("step", events[place].entity_id))
            found.append((self._calls, (workflow, step)))
        return found

    def _settle(self, *, forget: bool = False) -> None:
        """Add up what commits that are alike have added."""
        for shape in self._shapes.values():
            for alike in shape.alike.values():
                for counts, labels in alike.adds if alike.count else ():
                    counts[labels] += alike.count
                alike.count = 0
            if forget:
                shape.alike.clear()
        self._alike = 0 if forget else self._alike

    def _shape(self, types: tuple[str, ...]) -> _Shape:
        places = list(enumerate(types))
        started, routed, tokens, tasks = [
            [place for place, name in places if name == wanted]
            for wanted in ("step.started", "next.evaluated", "token.created", "task.done")
        ]
        others = [(place, _HANDLERS[name]) for place, name in places if name in _HANDLERS]
        entries = tokens if "playbook.started" in types else []
        is_known = len(types) <= _LONGEST_SHAPE
        is_plain = is_known and not others and len(started) == len(routed) <= 1 and len(tokens) <= 1
        made = _Shape(
            started,
            [(place, name != "step.scheduled") for place, name in places if name in _SPANS],
            routed,
            tokens,
            tasks,
            others,
            [(place, _EXECUTIONS[name]) for place, name in places if name in _EXECUTIONS],
            next(iter(routed or entries), None) if is_plain else None,
            {},
        )
        if is_known:
            if len(self._shapes) >= _MOST_SHAPES:
                self._settle(forget=True)
                self._shapes.clear()
            self._shapes[types] = made
        return made

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
        """Give everything in the text format."""
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

    def _execution_started(self, workflow: str, _event: Event) -> None:
        self._started[workflow,] += 1

    def _execution_ended(self, workflow: str, event: Event) -> None:
        status = str(event.status or event.payload.get("status", ""))
        self._completed[workflow, _STATUSES.get(status, status)] += 1

    def _loop(self, workflow: str, _playbook: str, event: Event) -> None:
        total = event.payload.get("total", len(event.payload.get("items") or ()))
        self._items[workflow, event.entity_id] += total if isinstance(total, int) else 0

    def _item(self, workflow: str, playbook: str, event: Event) -> None:
        ok = "true" if event.event_type == "loop.iteration.done" else "false"
        self._ended_items[workflow, event.entity_id, ok] += 1
        self._tasks.count(workflow, playbook, event)

    def _task(self, workflow: str, playbook: str, event: Event) -> None:
        self._tasks.count(workflow, playbook, event)

    def _gate(self, workflow: str, _playbook: str, event: Event) -> None:
        self._whens[workflow, event.entity_id, "true" if event.payload.get("allow") else "false"] += 1

    def _report_late(self, workflow: str, _playbook: str, _event: Event) -> None:
        self._late[workflow,] += 1

    def _repair(self, workflow: str, _playbook: str, event: Event) -> None:
        for what in [*event.payload] or ["state"]:
            self._repaired[workflow, what] += 1


_EXECUTIONS = {"playbook.started": Metrics._execution_started, "playbook.finished": Metrics._execution_ended}
# Those of tasks that went well are looked at only where there are sinks.
_HANDLERS = dict.fromkeys(TASK_EVENTS - {"task.done"}, Metrics._task) | {
    "loop.started": Metrics._loop,
    "loop.iteration.done": Metrics._item,
    "loop.iteration.failed": Metrics._item,
    "policy.admit.evaluated": Metrics._gate,
    "report.late": Metrics._report_late,
    "execution.repaired": Metrics._repair,
}
