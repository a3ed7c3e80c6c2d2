"""Trees for trials: one step alone, or the net up to a step.

Tested in tests/unit/dsl/tree/test_trial.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from noetl.dsl.tree.canonical import canonical
from noetl.dsl.tree.playbook import Executor, Playbook, Step, Task, Value

_FAILS = "on_step_fail"  # it may name an arc
_ENTRY, _FINAL = "entry_step", "final_step"


def cut_after(playbook: Playbook, name: str) -> Playbook:
    """Return a playbook whose step has no arcs: what follows it does not run."""
    steps = [_alone(step) if step.name == name else step for step in playbook.workflow]
    return replace(playbook, workflow=tuple(steps), triggers=())


def only(playbook: Playbook, name: str) -> Playbook:
    """Return a playbook that begins with a step and ends after it."""
    spec = {key: value for key, value in playbook.executor.spec.items() if key not in (_ENTRY, _FINAL, _FAILS)}
    executor: Executor = replace(playbook.executor, spec={**spec, _ENTRY: Value(name)})
    return replace(playbook, workflow=tuple(map(_alone, playbook.workflow)), executor=executor, triggers=())


def changed_steps(before: Playbook, after: Playbook) -> frozenset[str]:
    """Return the names of the steps that differ, or are in one of the trees only."""
    old, new = ({step["step"]: step for step in canonical(tree)["workflow"]} for tree in (before, after))
    return frozenset(name for name in {*old, *new} if old.get(name) != new.get(name))


def tasks_from(playbook: Playbook, start: str) -> Iterator[tuple[str, Task]]:
    """Yield the tasks that may run from a step on, each with the name of its step."""
    steps = {step.name: step for step in playbook.workflow}
    final = playbook.executor.spec.get(_FINAL)
    reached = dict.fromkeys([start])
    waiting = [start, str(final.data)] if final is not None else [start]
    while waiting:
        step = steps.get(waiting.pop())
        if step is not None:
            reached[step.name] = None
            waiting += [arc.step for arc in step.arcs if arc.step not in reached]
    for step in playbook.workflow:
        if step.name in reached:
            yield from ((step.name, task) for task in step.tasks)


def _alone(step: Step) -> Step:
    spec = {key: value for key, value in step.spec.items() if key != _FAILS}
    return replace(step, router=None, spec=spec)
