"""Compute which tasks of a pipeline may have run before another."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.tree.playbook import Step, Task


class PipelineOrder:
    """The order of the tasks of one pipeline, with its jumps."""

    def __init__(self, step: Step) -> None:
        self._places = {id(task): place for place, task in enumerate(step.tasks)}
        # For each task, the first one that a jump from it or from below leads to.
        self._highest = [len(step.tasks)] * (len(step.tasks) + 1)
        for start, target in _jumps(step):
            self._highest[start] = min(self._highest[start], target)
        for place in range(len(step.tasks) - 1, -1, -1):
            self._highest[place] = min(self._highest[place], self._highest[place + 1])

    def place_of(self, task: Task) -> int:
        """Return the index of a task."""
        return self._places[id(task)]

    @property
    def restarts(self) -> bool:
        """Whether a jump leads to the first task."""
        return self._highest[0] == 0

    def may_have_run(self, label_place: int, task_place: int) -> bool:
        """Return whether a task may have run before another: above, or by a jump."""
        return label_place < task_place or self._highest[label_place] <= task_place


class PipelineOrders:
    """The orders of the pipelines of a playbook, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, PipelineOrder] = {}

    def of(self, step: Step) -> PipelineOrder:
        if id(step) not in self._known:
            self._known[id(step)] = PipelineOrder(step)
        return self._known[id(step)]


def _jumps(step: Step) -> Iterator[tuple[int, int]]:
    """Yield the jumps of the pipeline between known tasks, as (from, to)."""
    places = {task.label: place for place, task in enumerate(step.tasks)}
    for place, task in enumerate(step.tasks):
        for rule in task.rules or ():
            if rule.then.do == "jump":
                target = place - 1 if rule.then.to == "previous" else places.get(rule.then.to or "", -1)
                if target >= 0:
                    yield place, target
