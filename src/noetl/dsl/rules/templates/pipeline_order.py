"""Compute which tasks of a pipeline may have run before another."""

from __future__ import annotations

from noetl.dsl.tree.playbook import Step, Task


def place_of(step: Step, task: Task) -> int:
    """Return the index of a task in its pipeline."""
    return next(place for place, other in enumerate(step.tasks) if other is task)


def jumps(step: Step) -> list[tuple[int, int]]:
    """Return the jumps of the pipeline between known tasks, as (from, to)."""
    places = {task.label: place for place, task in enumerate(step.tasks)}
    pairs: list[tuple[int, int]] = []
    for place, task in enumerate(step.tasks):
        for rule in task.rules or ():
            if rule.then.do == "jump":
                target = place - 1 if rule.then.to == "previous" else places.get(rule.then.to or "", -1)
                if target >= 0:
                    pairs.append((place, target))
    return pairs


def may_have_run(step: Step, label_place: int, task_place: int) -> bool:
    """Return whether a task may have run before another: above, or by a jump."""
    if label_place < task_place:
        return True
    return any(start >= label_place and target <= task_place for start, target in jumps(step))
