"""Convert a canonical tree to plain data in the canonical spelling.

`normalize(parse(dump(canonical(tree))))` equals `tree`, without comments. Tested in tests/unit/dsl/tree/test_normalize.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.dsl.tree.playbook import (
    NOTIFICATION,
    Action,
    Arc,
    Assign,
    Loop,
    Playbook,
    Router,
    Step,
    Task,
    TaskRule,
    Value,
)

Data = dict[str, Any]


def canonical(playbook: Playbook) -> Data:
    """Return the playbook as plain data without empty keys."""
    executor: Data = {"profile": playbook.executor.profile}
    executor |= _maybe("spec", _values(playbook.executor.spec))
    executor |= _maybe("requires", _value(playbook.executor.requires))
    root: Data = {
        "apiVersion": "noetl.io/v10",
        "kind": "Playbook",
        "metadata": {"name": playbook.name, "path": playbook.path, **_values(playbook.metadata)},
    }
    root |= _maybe("keychain", [{"name": entry.name, **_values(entry.fields)} for entry in playbook.keychain])
    root["executor"] = executor
    root |= _maybe("workload", _values(playbook.workload))
    root |= _maybe("workbook", [{task.label: _task(task)} for task in playbook.workbook])
    root["workflow"] = [_step(step) for step in playbook.workflow]
    if playbook.rollback is not None:
        root["policy"] = {"rollback": playbook.rollback}
    triggers = [one for one in playbook.triggers if one.kind != NOTIFICATION]
    others = [one for one in playbook.triggers if one.kind == NOTIFICATION]
    root |= _maybe("triggers", [{one.kind: one.name, **_values(one.fields)} for one in triggers])
    return root | _maybe("notifications", [{"name": one.name, **_values(one.fields)} for one in others])


def _maybe(name: str, data: Any) -> Data:
    return {} if data is None or data in ({}, [], "") else {name: data}


def _value(value: Value | None) -> Any:
    return value.data if value else None


def _values(values: Mapping[str, Value]) -> Data:
    return {name: value.data for name, value in values.items()}


def _sets(assigns: tuple[Assign, ...]) -> Data:
    return {assign.target: assign.value.data for assign in assigns}


def _step(step: Step) -> Data:
    spec = _values(step.spec)
    if step.admit is not None:
        rules = [
            {"else": {"then": {"allow": "skip" if rule.skips else rule.allow}}}
            if rule.when is None
            else {"when": rule.when.data, "then": {"allow": "skip" if rule.skips else rule.allow}}
            for rule in step.admit
        ]
        spec["policy"] = {**spec.get("policy", {}), "admit": {"rules": rules}}
    data: Data = {"step": step.name, **_maybe("desc", step.desc), **_maybe("spec", spec)}
    if step.loop:
        data["loop"] = _loop(step.loop)
    data |= _maybe("input", _values(step.input))
    data |= _maybe("tool", [{task.label: _task(task)} for task in step.tasks])
    data |= _maybe("set", _sets(step.sets))
    if step.router:
        data["next"] = _router(step.router)
    return data | _maybe("compensate", step.compensate)


def _loop(loop: Loop) -> Data:
    data: Data = {"iterator": loop.iterator}
    if loop.items is not None:
        data["in"] = loop.items.data
    if loop.cursor is not None:
        data["cursor"] = _values(loop.cursor)
    data |= _maybe("spec", _values(loop.spec))
    data |= _maybe("item_timeout_ms", _value(loop.item_timeout_ms))
    return data | _maybe("total_timeout_ms", _value(loop.total_timeout_ms))


def _router(router: Router) -> Data:
    return {"spec": {"mode": router.mode, **_values(router.spec)}, "arcs": [_arc(arc) for arc in router.arcs]}


def _arc(arc: Arc) -> Data:
    data: Data = {"step": arc.step}
    if arc.when is not None:
        data["when"] = arc.when.data
    data |= _maybe("args", _values(arc.args))
    data |= _maybe("set", _sets(arc.sets))
    data |= _maybe("label", arc.label)
    return data | _maybe("spec", _values(arc.spec))


def _task(task: Task) -> Data:
    spec = _values(task.spec)
    if task.rules is not None:
        spec["policy"] = {"rules": [_rule(rule) for rule in task.rules], "on_unmatched": task.on_unmatched}
    data: Data = {"kind": task.kind, **_maybe("desc", task.desc), **_values(task.fields)}
    data |= _maybe("input", _values(task.input))
    if task.auth is not None:
        data["auth"] = task.auth.data
    if task.timeout_ms is not None:
        data["timeout_ms"] = task.timeout_ms.data
    data |= _maybe("set", _sets(task.sets))
    return data | _maybe("spec", spec)


def _rule(rule: TaskRule) -> Data:
    then = _action(rule.then)
    return {"else": {"then": then}} if rule.when is None else {"when": rule.when.data, "then": then}


def _action(action: Action) -> Data:
    data: Data = {"do": action.do}
    for name in ("attempts", "delay", "backoff", "max_delay", "jitter"):
        value: Value | None = getattr(action, name)
        if value is not None:
            data[name] = value.data
    data |= _maybe("to", action.to)
    return data | _maybe("set", _sets(action.sets))
