"""Tells which tasks of a pipeline may have run when one of them does; shared by rules of this folder."""

from __future__ import annotations

from noetl.dsl.playbook import Step, Task


def place_of(step: Step, task: Task) -> int:
    """Give the place of a task in its pipeline, from 0."""
    return next(place for place, other in enumerate(step.tasks) if other is task)


def jumps(step: Step) -> list[tuple[int, int]]:
    """Give every jump of the pipeline, from place to place; jumps to nowhere are left out."""
    places = {task.label: place for place, task in enumerate(step.tasks)}
    found: list[tuple[int, int]] = []
    for place, task in enumerate(step.tasks):
        for rule in task.rules or ():
            if rule.then.do == "jump":
                target = place - 1 if rule.then.to == "previous" else places.get(rule.then.to or "", -1)
                if target >= 0:
                    found.append((place, target))
    return found


def may_have_run(step: Step, label_place: int, task_place: int) -> bool:
    """Tell whether the task at one place may have run before the one at the other: it is above, or a jump leads back."""
    if label_place < task_place:
        return True
    return any(start >= label_place and target <= task_place for start, target in jumps(step))
