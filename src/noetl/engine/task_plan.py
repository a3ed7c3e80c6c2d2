"""The plan of a task: everything that can be known of it before it runs, computed once for a step and kept with it.

What needs no rendering is here as it is given to the tool; which records, keys and limits a task has is looked up in its
settings once. Decides nothing, and knows nothing of a run. Tested in tests/unit/engine/test_task_plan.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from noetl.dsl.playbook import Task
from noetl.engine.actions import Written
from noetl.engine.pages import strategy
from noetl.engine.render import is_written
from noetl.engine.sinks import sink_id
from noetl.engine.waits import SUSPENDING
from noetl.engine.writes import merge

MAX_TRANSITIONS: Final = 1_000_000
CODE_KINDS: Final = frozenset({"python", "script"})
_ASKS_MORE: Final = SUSPENDING | CODE_KINDS | {"workbook", "outbox"}  # of the run, not of the task alone
_RENDERED_SETTINGS: Final = ("result", "timeout")


class TaskPlan:
    """A task, and what follows from it and from the settings around it; `called`: inside a workbook call."""

    __slots__ = (
        "fields", "has_policy", "is_durable", "is_straight", "is_strict", "most_transitions", "pages", "settings", "sink",
        "task", "timeout", "timeout_ms", "timeout_scale",
    )  # fmt: skip

    def __init__(self, task: Task, settings: Mapping[str, Any], called: bool = False) -> None:
        if task.spec:
            settings = merge(settings, {name: value.data for name, value in task.spec.items()})
        self.task = task
        self.settings = settings  # of the task, by layering
        self.sink = sink_id(task)
        self.pages = strategy(task)
        self.is_durable = settings.get("durability") == "task"
        self.is_strict = settings.get("strict_templates") is not False
        self.most_transitions = _most_transitions(settings)
        self.timeout, self.timeout_scale = _timeout(task, settings, self.sink is not None)
        self.timeout_ms = self.timeout * self.timeout_scale if isinstance(self.timeout, int | float) else None
        self.has_policy = task.rules is not None or bool(task.sets)
        # Whether success leads straight on: nobody reads the outcome but whoever has the result.
        self.is_straight = not self.has_policy and self.pages is None and not called
        self.fields = _written(task, settings, self.timeout is None or self.timeout_ms is not None)


def plans_of(tasks: tuple[Task, ...], settings: Mapping[str, Any], called: bool = False) -> tuple[TaskPlan, ...]:
    """Plan the tasks of a pipeline."""
    return tuple(TaskPlan(task, settings, called) for task in tasks)


def _written(task: Task, settings: Mapping[str, Any], has_limit: bool) -> Written | None:
    """Give the fields of a task of which nothing at all is rendered; None of any other."""
    if task.kind in _ASKS_MORE or task.input or task.auth is not None or not has_limit:
        return None
    if any(name in settings for name in _RENDERED_SETTINGS):
        return None
    return Written({key: value.data for key, value in task.fields.items()}) if is_written(task.fields) else None


def _most_transitions(settings: Mapping[str, Any]) -> int:
    limits = settings.get("limits")
    given = limits.get("max_transitions") if isinstance(limits, Mapping) else None
    return MAX_TRANSITIONS if given is None else int(given)


def _timeout(task: Task, settings: Mapping[str, Any], stores: bool) -> tuple[Any, float]:
    """Give how long one attempt may take, as it is written, and how many milliseconds its unit has."""
    if task.timeout_ms is not None and task.timeout_ms.data is not None:
        return task.timeout_ms.data, 1.0
    own = task.spec.get("timeout")
    found = own.data if own is not None else None
    if isinstance(found, Mapping):
        found = found.get("total")
    if found is not None:
        return found, 1000.0
    timeouts = settings.get("timeouts")
    if task.kind in SUSPENDING or task.kind == "workbook" or not isinstance(timeouts, Mapping):
        return None, 1.0  # what it calls has a limit of its own
    found = timeouts.get("sink_default_ms") if stores else None  # a write may have one of its own
    return (timeouts.get("tool_default_ms") if found is None else found), 1.0
