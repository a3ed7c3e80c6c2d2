"""Dry runs: the steps a run would take, and the inputs known beforehand.

An arc with an open condition may or may not be taken. Tested in tests/unit/engine/queries/test_dry_run.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from noetl.dsl.tree.playbook import Arc, Step, Task, Value
from noetl.engine.plan.plan import Plan, template
from noetl.engine.state.writes import plain
from noetl.expr import Template, TemplateError, first_undefined

_SHADOWS_EVERYTHING = frozenset(
    {"ctx", "vars", "iter", "step", "keychain", "event", "outcome", "output", "input", "args"}
)
_CODE_KINDS = frozenset({"python", "script"})  # their code is not a template


class Input(Struct, frozen=True, omit_defaults=True):
    """One input of a task; an open one as written."""

    name: str
    value: Any
    known: bool
    problem: str | None = None  # why it can never be rendered


class ForeseenTask(Struct, frozen=True):
    """A task of a pipeline, with its known inputs."""

    label: str
    kind: str
    inputs: tuple[Input, ...]


class Way(Struct, frozen=True):
    """An arc, and whether it is taken: taken, open, on failure, never."""

    step: str
    when: str | None
    taken: str


class Foreseen(Struct, frozen=True):
    """A step that the run reaches, or may reach."""

    step: str
    sure: bool
    gated: bool
    loop: Input | None
    tasks: tuple[ForeseenTask, ...]
    ways: tuple[Way, ...]


class _Seen(Struct):
    sure: bool
    args: Mapping[str, Any] = {}
    args_known: bool = False  # `args` is complete


def foresee(plan: Plan, workload: Mapping[str, Any]) -> tuple[Foreseen, ...]:
    """Return the steps that a run can reach, in order."""
    bare = {key: value for key, value in workload.items() if key not in _shadowing(plan)}
    seen: dict[str, _Seen] = {plan.entry: _Seen(True, {}, True)}
    waiting, steps = [plan.entry], []
    while waiting:
        step = plan.step(waiting.pop(0))
        known = {**bare, "workload": workload, **_args(seen[step.name])}
        ways = _ways(plan, step, known)
        for arc, way in ways:
            if way.taken == "never" or arc.step in seen:
                continue
            once = len(plan.net.into[plan.net.index[arc.step]]) == 1
            args = {key: _known(value.data, known) for key, value in arc.args.items()} if once else {}
            known_args = {key: value for key, (value, is_known) in args.items() if is_known}
            seen[arc.step] = _Seen(
                seen[step.name].sure and way.taken == "taken", known_args, once and len(known_args) == len(args)
            )
            waiting.append(arc.step)
        steps.append(_foreseen(plan, step, seen[step.name].sure, known, tuple(way for _, way in ways)))
    if plan.final is not None and plan.final not in seen:
        steps.append(_foreseen(plan, plan.step(plan.final), True, {**bare, "workload": workload}, ()))
    return tuple(steps)


def _shadowing(plan: Plan) -> set[str]:
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
    settled = False  # an earlier arc is certainly taken, and only one can be
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
    values = {**task.fields, **{f"input.{name}": value for name, value in task.input.items()}}
    checked = strict and task.kind not in _CODE_KINDS and "strict_templates" not in task.spec
    inputs = [
        Input(name, *_known(value.data, known), _problem(value.data, known) if checked else None)
        for name, value in values.items()
    ]
    return ForeseenTask(task.label, task.kind, tuple(inputs))


def _known(data: Any, known: Mapping[str, Any]) -> tuple[Any, bool]:
    if isinstance(data, Mapping):
        parts = {key: _known(value, known) for key, value in data.items()}
        return {key: value for key, (value, _) in parts.items()}, all(is_known for _, is_known in parts.values())
    if isinstance(data, list | tuple):
        items = [_known(value, known) for value in data]
        return [value for value, _ in items], all(is_known for _, is_known in items)
    compiled = template(data) if isinstance(data, str) else None
    return (data, True) if compiled is None else _rendered(compiled, known)


def _problem(data: Any, known: Mapping[str, Any]) -> str | None:
    if isinstance(data, Mapping | list | tuple):
        parts = data.values() if isinstance(data, Mapping) else data
        return next((problem for part in parts if (problem := _problem(part, known)) is not None), None)
    compiled = template(data) if isinstance(data, str) else None
    if compiled is None or not _reads_only_known(compiled, known):
        return None
    try:
        missing = first_undefined(compiled.evaluate(known, strict=True))
        return None if missing is None else missing.fail()
    except TemplateError as error:
        return error.message


def _reads_only_known(compiled: Template, known: Mapping[str, Any]) -> bool:
    if compiled.problems or not (compiled.reads or compiled.constant):
        return False
    return not any(read.called or read.path[0] not in known for read in compiled.reads)


def _rendered(compiled: Template, known: Mapping[str, Any]) -> tuple[Any, bool]:
    if not _reads_only_known(compiled, known):
        return compiled.source, False
    try:
        value = compiled.evaluate(known, strict=True)
    except TemplateError:
        return compiled.source, False
    return (compiled.source, False) if first_undefined(value) is not None else (plain(value), True)
