"""Foresees a run as far as it can be known before anything runs: the route, and every input that depends on nothing open.

What tools give, `ctx`, and arguments made of them are open; an arc whose condition is open may or may not be taken. Decides
nothing and runs nothing. Tested in tests/unit/engine/test_foresee.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from noetl.dsl.playbook import Arc, Step, Task, Value
from noetl.engine.plan import Plan, template
from noetl.engine.writes import plain
from noetl.expr import Template, TemplateError, first_undefined

_SHADOWS_EVERYTHING = frozenset(
    {"ctx", "vars", "iter", "step", "keychain", "event", "outcome", "output", "input", "args"}
)


_CODE_KINDS = frozenset({"python", "script"})  # their code is no template


class Input(Struct, frozen=True, omit_defaults=True):
    """One input of a task; an open one stands as it is written."""

    name: str
    value: Any
    known: bool
    problem: str | None = None  # why it cannot be rendered, whatever runs


class ForeseenTask(Struct, frozen=True):
    """A task of a pipeline, with its inputs as far as they are known."""

    label: str
    kind: str
    inputs: tuple[Input, ...]


class Way(Struct, frozen=True):
    """An arc and what is known of it: taken, open, on failure, or never taken."""

    step: str
    when: str | None
    taken: str


class Foreseen(Struct, frozen=True):
    """A step that the run comes to, or may come to."""

    step: str
    sure: bool
    gated: bool
    loop: Input | None
    tasks: tuple[ForeseenTask, ...]
    ways: tuple[Way, ...]


class _Seen(Struct):
    """What is known when a step begins."""

    sure: bool
    args: Mapping[str, Any] = {}
    args_known: bool = False  # all of them are in `args`


def foresee(plan: Plan, workload: Mapping[str, Any]) -> tuple[Foreseen, ...]:
    """Give the steps that a run can come to, in the order it would."""
    bare = {key: value for key, value in workload.items() if key not in _shadowing(plan)}
    seen: dict[str, _Seen] = {plan.entry: _Seen(True, {}, True)}
    waiting, found = [plan.entry], []
    while waiting:
        step = plan.step(waiting.pop(0))
        known = {**bare, "workload": workload, **_args(seen[step.name])}
        ways = _ways(plan, step, known)
        for arc, way in ways:
            if way.taken == "never" or arc.step in seen:
                continue
            once = len(plan.net.into[plan.net.index[arc.step]]) == 1
            args = {key: _known(value.data, known) for key, value in arc.args.items()} if once else {}
            kept = {key: value for key, (value, is_known) in args.items() if is_known}
            seen[arc.step] = _Seen(seen[step.name].sure and way.taken == "taken", kept, once and len(kept) == len(args))
            waiting.append(arc.step)
        found.append(_foreseen(plan, step, seen[step.name].sure, known, tuple(way for _, way in ways)))
    if plan.final is not None and plan.final not in seen:
        found.append(_foreseen(plan, plan.step(plan.final), True, {**bare, "workload": workload}, ()))
    return tuple(found)


def _shadowing(plan: Plan) -> set[str]:
    """Give the bare names that may mean something else than a key of the workload."""
    names = {*_SHADOWS_EVERYTHING, *plan.net.index}
    for step in plan.net.steps:
        names |= {assign.key.partition(".")[0] for assign in step.sets}
        names |= {step.loop.iterator} if step.loop is not None else set()
        for task in step.tasks:
            names |= {task.label, *task.input, *(assign.key.partition(".")[0] for assign in task.sets)}
            names |= {a.key.partition(".")[0] for rule in task.rules or () for a in rule.then.sets}
        for arc in step.arcs:
            names |= {*arc.args, *(assign.key.partition(".")[0] for assign in arc.sets)}
    return names


def _args(seen: _Seen) -> dict[str, Any]:
    if seen.args_known:
        return {"args": dict(seen.args)}
    return {f"args.{key}": value for key, value in seen.args.items()}


def _ways(plan: Plan, step: Step, known: Mapping[str, Any]) -> list[tuple[Arc, Way]]:
    ways: list[tuple[Arc, Way]] = []
    settled = False  # an arc before this one is taken for sure, and only one can be
    exclusive = step.router is None or step.router.mode == "exclusive"
    for arc in step.arcs:
        if arc.step not in plan.net.index:
            continue
        after = None if arc.when is None else _decide(arc.when, {**known, "event.name": "step.done"})
        on_failure = arc.when is not None and _decide(arc.when, {**known, "event.name": "step.failed"}) is not False
        if arc.when is None or after is True:
            taken = "never" if settled else "open" if exclusive and any(w.taken == "open" for _, w in ways) else "taken"
        elif after is None:
            taken = "never" if settled else "open"
        else:
            taken = "on failure" if on_failure else "never"
        settled = settled or (exclusive and taken == "taken")
        ways.append((arc, Way(arc.step, None if arc.when is None else str(arc.when.data), taken)))
    return ways


def _decide(when: Value, known: Mapping[str, Any]) -> bool | None:
    if isinstance(when.data, bool):
        return when.data
    compiled = template(when.data) if isinstance(when.data, str) else None
    return compiled.decide(known) if compiled is not None else None


def _foreseen(plan: Plan, step: Step, sure: bool, known: Mapping[str, Any], ways: tuple[Way, ...]) -> Foreseen:
    loop = None
    if step.loop is not None:
        items, is_known = _known(step.loop.items.data, known) if step.loop.items is not None else ("cursor", False)
        loop = Input(step.loop.iterator, items, is_known)
    strict = plan.setting("strict_templates", step, True) is not False
    tasks = tuple(_task(task, known, strict) for task in step.tasks)
    return Foreseen(step.name, sure, step.admit is not None, loop, tasks, ways)


def _task(task: Task, known: Mapping[str, Any], strict: bool) -> ForeseenTask:
    given = {**task.fields, **{f"input.{name}": value for name, value in task.input.items()}}
    checked = strict and task.kind not in _CODE_KINDS and "strict_templates" not in task.spec
    inputs = [
        Input(name, *_known(value.data, known), _problem(value.data, known) if checked else None)
        for name, value in given.items()
    ]
    return ForeseenTask(task.label, task.kind, tuple(inputs))


def _known(data: Any, known: Mapping[str, Any]) -> tuple[Any, bool]:
    """Render a value as far as it is known; tells whether all of it is."""
    if isinstance(data, Mapping):
        parts = {key: _known(value, known) for key, value in data.items()}
        return {key: value for key, (value, _) in parts.items()}, all(is_known for _, is_known in parts.values())
    if isinstance(data, list | tuple):
        items = [_known(value, known) for value in data]
        return [value for value, _ in items], all(is_known for _, is_known in items)
    compiled = template(data) if isinstance(data, str) else None
    return (data, True) if compiled is None else _rendered(compiled, known)


def _problem(data: Any, known: Mapping[str, Any]) -> str | None:
    """Tell what is wrong with a value of which everything that it reads is known."""
    if isinstance(data, Mapping | list | tuple):
        parts = data.values() if isinstance(data, Mapping) else data
        return next((found for part in parts if (found := _problem(part, known)) is not None), None)
    compiled = template(data) if isinstance(data, str) else None
    if compiled is None or not _is_open_to(compiled, known):
        return None
    try:
        missing = first_undefined(compiled.evaluate(known, strict=True))
        return None if missing is None else missing.fail()
    except TemplateError as error:
        return error.message


def _is_open_to(compiled: Template, known: Mapping[str, Any]) -> bool:
    """Tell whether a template reads only what is known."""
    if compiled.problems or not (compiled.reads or compiled.constant):
        return False
    return not any(read.called or read.path[0] not in known for read in compiled.reads)


def _rendered(compiled: Template, known: Mapping[str, Any]) -> tuple[Any, bool]:
    if not _is_open_to(compiled, known):
        return compiled.source, False
    try:
        value = compiled.evaluate(known, strict=True)
    except TemplateError:
        return compiled.source, False
    return (compiled.source, False) if first_undefined(value) is not None else (plain(value), True)
