"""The plan of a task: everything that can be known of it before it runs, computed once for a step and kept with it.

What needs no rendering is here as it is given to the tool; which records, keys and limits a task has is looked up in its
settings once. Decides nothing, and knows nothing of a run. Tested in tests/unit/engine/test_task_plan.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from noetl.dsl.playbook import Task, Value
from noetl.engine.actions import Written
from noetl.engine.render import is_written
from noetl.engine.sinks import sink_id
from noetl.engine.waits import SUSPENDING
from noetl.engine.writes import merge
from noetl.model.refs import STRATEGIES

MAX_TRANSITIONS: Final = 1_000_000
CODE_KINDS: Final = frozenset({"python", "script"})
_ASKS_MORE: Final = SUSPENDING | CODE_KINDS | {"workbook", "outbox"}  # of the run, not of the task alone
_NUMBER_OR_NONE: Final = (int, float, type(None))


class Layered:
    """Settings by layering, and what follows from them for any task."""

    __slots__ = ("given", "is_durable", "is_rendered", "is_strict", "most_transitions", "timeouts")

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given
        self.is_durable = given.get("durability") == "task"
        self.is_strict = given.get("strict_templates") is not False
        self.is_rendered = "result" in given or "timeout" in given  # templates may stand there
        limits, timeouts = given.get("limits"), given.get("timeouts")
        most = limits.get("max_transitions") if isinstance(limits, Mapping) else None
        self.most_transitions = MAX_TRANSITIONS if most is None else int(most)
        self.timeouts: Mapping[str, Any] | None = timeouts if isinstance(timeouts, Mapping) else None

    def over(self, spec: Mapping[str, Value]) -> Layered:
        """Give these settings with one more layer over them."""
        return Layered(merge(self.given, {name: value.data for name, value in spec.items()})) if spec else self


class TaskPlan(Struct, frozen=True):
    """A task, and what follows from it and from the settings around it."""

    task: Task
    layered: Layered  # the settings, the task's own last
    sink: str | None
    pages: tuple[str, str | None] | None  # how those that it gives become one
    timeout: Any  # of one attempt, as it is written
    timeout_scale: float  # milliseconds of its unit
    told: Mapping[str, Any]  # by the record of its beginning
    has_policy: bool
    fields: Written | None  # of a task of which nothing at all is rendered


def plan_task(task: Task, layered: Layered) -> TaskPlan:
    """Plan a task; `layered` are the settings around it."""
    if task.spec:
        layered = layered.over(task.spec)
    sink, pages, timeout, scale, fields = sink_id(task), None, None, 1.0, None
    if task.spec or task.timeout_ms is not None or layered.timeouts is not None:
        pages = _strategy(task)
        timeout, scale = _timeout(task, layered, sink is not None)
    has_policy = task.rules is not None or bool(task.sets)
    more = task.input or task.auth is not None or layered.is_rendered or task.kind in _ASKS_MORE
    if not more and isinstance(timeout, _NUMBER_OR_NONE) and is_written(task.fields):
        fields = Written({key: value.data for key, value in task.fields.items()})
    return TaskPlan(task, layered, sink, pages, timeout, scale, {"kind": task.kind}, has_policy, fields)


def plans_of(tasks: tuple[Task, ...], around: Layered) -> tuple[TaskPlan, ...]:
    """Plan the tasks of a pipeline."""
    return tuple([plan_task(task, around) for task in tasks])


def _strategy(task: Task) -> tuple[str, str | None] | None:
    """Tell how the pages of a task become one, and where in each page the value is; None where nobody said so."""
    if "result" not in task.spec:
        return None
    controls = task.spec["result"].data
    found = controls.get("strategy") if isinstance(controls, Mapping) else None
    if not isinstance(controls, Mapping) or found not in STRATEGIES:
        return None
    path = controls.get("merge_path")
    return found, str(path) if path else None


def _timeout(task: Task, layered: Layered, stores: bool) -> tuple[Any, float]:
    """Give how long one attempt may take, as it is written, and how many milliseconds its unit has."""
    if task.timeout_ms is not None and task.timeout_ms.data is not None:
        return task.timeout_ms.data, 1.0
    own = task.spec.get("timeout")
    found = own.data if own is not None else None
    if isinstance(found, Mapping):
        found = found.get("total")
    if found is not None:
        return found, 1000.0
    timeouts = layered.timeouts
    if timeouts is None or task.kind in SUSPENDING or task.kind == "workbook":  # what it calls has a limit of its own
        return None, 1.0
    found = timeouts.get("sink_default_ms") if stores else None  # a write may have one of its own
    return (timeouts.get("tool_default_ms") if found is None else found), 1.0
