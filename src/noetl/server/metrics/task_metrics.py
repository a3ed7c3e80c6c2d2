"""Metrics of tasks: sinks, retries, errors, timeouts and cancellations.

Counted from committed events; kind, sink and mode of a task come from the plan. For a successful loop item the log holds
one event only: every task of it ran once, unless a policy changed the flow. The duration of a sink is known only where the
log has an event of the task. Tested in tests/unit/server/metrics/test_task_metrics.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from noetl.engine.plan.plan import Plan
from noetl.engine.tasks.sinks import sink_id
from noetl.model.events import Event
from noetl.model.outcome import class_of
from noetl.observe.counters import Counts, Spread
from noetl.observe.task_facts import TaskFacts, run_by, task_facts, task_in

PlanOf = Callable[[str], Plan | None]  # content hash → plan, if it is in memory
TASK_EVENTS: Final = frozenset((
    "task.done", "task.failed", "task.attempt.failed", "policy.task.evaluated", "loop.iteration.done",
    "loop.iteration.failed", "timer.fired", "execution.cancelled", "step.failed",
))  # fmt: skip
_DEADLINES: Final = ("execution", "step", "loop", "deadline")
_MOST: Final = 10_000  # cached tasks, and remembered items
_Item = tuple[str, str, int | None]


class TaskMetrics:
    """The counters of tasks of one server."""

    def __init__(self, plan_of: PlanOf | None = None) -> None:
        self._plan_of = plan_of or (lambda _: None)
        self._dispatched = Counts("noetl_sink_dispatch_total")
        self._took = Spread("noetl_sink_duration_seconds")
        self._completed = Counts("noetl_sink_tasks_completed_total")
        self._modes = Counts("noetl_sink_mode_total")
        self._sink_retries = Counts("noetl_sink_retry_total")
        self._retries = Counts("noetl_task_retries_total")
        self._errors = Counts("noetl_plugin_errors_total")
        self._timeouts = Counts("noetl_timeouts_total")
        self._cancelled = Counts("noetl_cancellations_total")
        self.counted = (
            self._dispatched, self._took, self._completed, self._modes, self._sink_retries, self._retries, self._errors,
            self._timeouts, self._cancelled,
        )  # fmt: skip
        self._known: dict[tuple[str, str, str], TaskFacts] = {}
        self._quiet: dict[tuple[str, str], tuple[tuple[str, TaskFacts], ...]] = {}  # tasks of loops with sinks
        self._sinks_of: dict[str, bool] = {}  # playbook → whether it has sinks
        self._led: dict[_Item, None] = {}  # items whose policies changed the flow

    def has_sinks(self, playbook: str) -> bool:
        """Return whether a playbook has sinks; successful tasks of others are not counted."""
        found = self._sinks_of.get(playbook)
        if found is None:
            plan = self._plan_of(playbook)
            if plan is None:
                return False
            tasks = [*plan.playbook.workbook, *(task for step in plan.net.steps for task in step.tasks)]
            found = self._sinks_of[playbook] = any(sink_id(task) is not None for task in tasks)
            _bound(self._sinks_of)
        return found

    def count(self, workflow: str, playbook: str, event: Event) -> None:
        """Count one event."""
        kind, step = event.event_type, (event.step_run_id or "").partition("#")[0]
        if kind == "task.done":
            about = self._about(playbook, step, event.entity_id)
            if about.sink is not None:
                self._task(workflow, step, about, event)
        elif kind in ("loop.iteration.done", "loop.iteration.failed"):
            self._item(workflow, playbook, step, event)
        elif kind == "policy.task.evaluated":
            self._policy(event)
        elif kind == "timer.fired":
            cause = str(event.payload.get("cause", ""))
            if cause in _DEADLINES:
                self._timeouts[workflow, step, cause] += 1
        elif kind == "execution.cancelled":
            if event.payload.get("cause") == "cancelled":
                self._cancelled[workflow, "execution"] += 1
        elif kind == "step.failed":
            if (event.payload.get("error") or {}).get("kind") == "cancelled":
                self._cancelled[workflow, "step"] += 1
        else:
            self._task(workflow, step, self._about(playbook, step, event.entity_id), event)

    def _task(self, workflow: str, step: str, about: TaskFacts, event: Event) -> None:
        """Count an ended task or a failed attempt, except a task's last one."""
        error: Any = event.payload.get("error")
        again = event.event_type == "task.attempt.failed"
        if again and "delay_ms" not in event.payload:
            return
        if again:
            self._retries[workflow, step, about.kind] += 1
        if error is not None:
            self._errors[about.kind, class_of(error)] += 1
            if error.get("kind") in ("timeout", "db_timeout"):
                self._timeouts[workflow, step, "task" if about.sink is None else "sink"] += 1
        if about.sink is None:
            return
        self._dispatched[about.sink, workflow, step] += 1
        if again:
            self._sink_retries[about.sink,] += 1
            return
        self._sunk(about, about.sink, error is None)
        if event.duration_ms is not None:
            self._took.observe((about.sink, workflow, step), event.duration_ms / 1000)

    def _sunk(self, about: TaskFacts, sink: str, ok: bool) -> None:
        self._completed[sink, "true" if ok else "false"] += 1
        if ok and about.mode:
            self._modes[sink, about.mode] += 1

    def _policy(self, event: Event) -> None:
        if event.iteration is not None and event.payload.get("do") in ("jump", "break", "skip"):
            self._led[_item_of(event)] = None
            if len(self._led) > _MOST:
                del self._led[next(iter(self._led))]

    def _item(self, workflow: str, playbook: str, step: str, event: Event) -> None:
        error = event.payload.get("error")
        if error is not None and error.get("kind") == "timeout" and "task" not in error:
            self._timeouts[workflow, step, "item"] += 1
        led = bool(self._led) and self._led.pop(_item_of(event), self) is None
        if led or (error is not None and "task" not in error):
            return  # the log does not show which tasks ran
        for label, about in self._sinks(playbook, step):
            if error is not None and label == error["task"].partition("/")[0]:
                return
            if about.sink is not None:
                self._dispatched[about.sink, workflow, step] += 1
                self._sunk(about, about.sink, True)

    def _sinks(self, playbook: str, step: str) -> tuple[tuple[str, TaskFacts], ...]:
        """Return the tasks of loop items in order; none if each has an event."""
        found = self._quiet.get((playbook, step))
        plan = self._plan_of(playbook) if found is None else None
        if plan is not None and step in plan.net.index:
            quiet = plan.setting("durability", plan.step(step)) != "task"
            tasks = plan.step(step).tasks if quiet else ()
            found = self._quiet[playbook, step] = tuple((task.label, task_facts(run_by(plan, task))) for task in tasks)
            if all(about.sink is None for _, about in found):
                found = self._quiet[playbook, step] = ()
            _bound(self._quiet)
        return found or ()

    def _about(self, playbook: str, step: str, label: str) -> TaskFacts:
        name = (playbook, step, label)
        found = self._known.get(name)
        if found is None:
            plan = self._plan_of(playbook)
            task = None if plan is None else task_in(plan, step, label)
            if task is None:
                return TaskFacts("")
            found = self._known[name] = task_facts(task)
            _bound(self._known)
        return found


def _item_of(event: Event) -> _Item:
    return event.execution_id, str(event.step_run_id), event.iteration


def _bound(known: dict[Any, Any]) -> None:
    if len(known) > _MOST:
        del known[next(iter(known))]
