"""The plan of a task: what is known before it runs, once per step.

Independent of a run. Tested in tests/unit/engine/tasks/test_task_plan.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.tree.playbook import Assign, Task, Value
from noetl.engine.state.writes import merge
from noetl.engine.tasks.actions import Written
from noetl.engine.tasks.assertions import Assertions, assertions
from noetl.engine.tasks.render import is_literal, reads_any
from noetl.engine.tasks.sinks import is_aside, sink_id
from noetl.engine.tasks.waits import SUSPENDING
from noetl.model.refs import STRATEGIES

MAX_TRANSITIONS: Final = 1_000_000
CODE_KINDS: Final = frozenset({"python", "script"})
_ASKS_MORE: Final = SUSPENDING | CODE_KINDS | {"workbook", "outbox"}  # they read more of the run than their fields
_OF_THE_OUTCOME: Final = frozenset({"output", "outcome"})
_NUMBER_OR_NONE: Final = (int, float, type(None))


class Layered:
    """Settings by layering, and what follows from them for every task."""

    __slots__ = ("given", "is_durable", "is_rendered", "is_strict", "most_transitions", "timeouts")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.is_durable = given.get("durability") == "task"
        self.is_strict = given.get("strict_templates") is not False
        self.is_rendered = "result" in given or "timeout" in given  # may contain templates
        limits, timeouts = given.get("limits"), given.get("timeouts")
        most = limits.get("max_transitions") if isinstance(limits, Mapping) else None
        self.most_transitions = MAX_TRANSITIONS if most is None else int(most)
        self.timeouts: Mapping[str, Any] | None = timeouts if isinstance(timeouts, Mapping) else None

    def over(self, spec: Mapping[str, Value]) -> Layered:
        """Return these settings with one more layer."""
        return Layered(merge(self.given, {name: value.data for name, value in spec.items()})) if spec else self


class TaskPlan(Struct, frozen=True):
    """A task, and what follows from its fields and settings."""

    task: Task
    layered: Layered  # the settings, the task's own last
    sink: str | None
    pages: tuple[str, str | None] | None  # how its pages are combined: strategy, merge_path
    timeout: Any  # of one attempt, as written
    timeout_scale: float  # milliseconds per unit of it
    told: Mapping[str, Any]  # payload of the record of its start
    has_policy: bool
    fields: Written | None  # of a task without anything to render
    asserts: Assertions | None = None
    after_error: tuple[Assign, ...] = ()  # writes that read the outcome, so that an error that continues makes them too
    is_aside: bool = False  # its result is neither `_prev` nor the step's


def is_constant(plan: TaskPlan) -> bool:
    """Return whether running a task evaluates nothing, whatever its outcome."""
    return plan.fields is not None and plan.timeout is None and not plan.has_policy


def plan_task(task: Task, layered: Layered) -> TaskPlan:
    """Plan a task; `layered` are the settings around it."""
    if task.spec:
        layered = layered.over(task.spec)
    sink, pages, timeout, scale, fields = sink_id(task), None, None, 1.0, None
    if task.spec or task.timeout_ms is not None or layered.timeouts is not None:
        pages = _strategy(task)
        timeout, scale = _timeout(task, layered, sink is not None)
    has_policy = task.rules is not None or bool(task.sets)
    asserts = assertions(task.spec.get("assert"))
    more = asserts or task.input or task.auth is not None or layered.is_rendered or task.kind in _ASKS_MORE
    if not more and isinstance(timeout, _NUMBER_OR_NONE) and is_literal(task.fields):
        fields = Written({key: value.data for key, value in task.fields.items()})
    after_error = tuple(assign for assign in task.sets if reads_any(assign.value.data, _OF_THE_OUTCOME))
    told = {"kind": task.kind}
    return TaskPlan(
        task, layered, sink, pages, timeout, scale, told, has_policy, fields, asserts, after_error, is_aside(task)
    )


def plans_of(tasks: tuple[Task, ...], around: Layered) -> tuple[TaskPlan, ...]:
    """Plan the tasks of a pipeline."""
    return tuple([plan_task(task, around) for task in tasks])


def _strategy(task: Task) -> tuple[str, str | None] | None:
    if "result" not in task.spec:
        return None
    controls = task.spec["result"].data
    strategy = controls.get("strategy") if isinstance(controls, Mapping) else None
    if not isinstance(controls, Mapping) or strategy not in STRATEGIES:
        return None
    path = controls.get("merge_path")
    return strategy, str(path) if path else None


def _timeout(task: Task, layered: Layered, is_sink: bool) -> tuple[Any, float]:
    """Return the time-out of one attempt as written, and its unit in milliseconds."""
    if task.timeout_ms is not None and task.timeout_ms.data is not None:
        return task.timeout_ms.data, 1.0
    setting = task.spec.get("timeout")
    limit = setting.data if setting is not None else None
    if isinstance(limit, Mapping):
        limit = limit.get("total")
    if limit is not None:
        return limit, 1000.0
    timeouts = layered.timeouts
    if timeouts is None or task.kind in SUSPENDING or task.kind == "workbook":  # the called task has its own
        return None, 1.0
    limit = timeouts.get("sink_default_ms") if is_sink else None  # sinks may have their own default
    return (timeouts.get("tool_default_ms") if limit is None else limit), 1.0
