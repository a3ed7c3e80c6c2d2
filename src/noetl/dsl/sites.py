"""Finds every template of a playbook, with the place it stands in and the role it plays there.

The role decides which names exist (`scopes`) and who evaluates it. Nothing is judged here. Tested in
tests/unit/dsl/test_sites.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from noetl.dsl.kinds import Kinds
from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.playbook import Arc, Assign, Playbook, Step, Task, TaskRule, Value
from noetl.dsl.types import Text
from noetl.expr import Template, TemplateError, compile_template

Role = Literal[
    "workload", "keychain", "executor", "admit", "loop", "cursor", "step_input", "step_spec",
    "task_input", "task_rule", "task_then", "task_set", "step_set", "arc_when", "arc_args", "arc_set",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Site:
    """One template where it stands."""

    node: Scalar
    role: Role
    template: Template | None  # None where it does not parse
    error: TemplateError | None = None
    step: Step | None = None
    task: Task | None = None
    arc: Arc | None = None
    rule: TaskRule | None = None
    field: str = ""  # the input field or the target of the write
    in_workbook: bool = False

    @property
    def is_condition(self) -> bool:
        return self.role in ("admit", "task_rule", "arc_when")


def sites(playbook: Playbook, kinds: Kinds) -> tuple[Site, ...]:
    """Give every template of the playbook in file order of its parts."""
    found: list[Site] = []
    for role, values in (("workload", playbook.workload), ("executor", playbook.executor.spec)):
        found.extend(_sites_of(values, role))
    for entry in playbook.keychain:
        found.extend(_sites_of(entry.fields, "keychain"))
    for task in playbook.workbook:
        found.extend(_task_sites(task, None, kinds, in_workbook=True))
    for step in playbook.workflow:
        found.extend(_step_sites(step, kinds))
    return tuple(found)


def scalars(node: Node | None) -> Iterator[Scalar]:
    """Give every scalar value at or below a node, in order."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, MapNode):
        for entry in node:
            yield from scalars(entry.value)
    elif isinstance(node, ListNode):
        for item in node:
            yield from scalars(item)


def _make(node: Scalar, role: Role, **place: object) -> Site | None:
    if not isinstance(node.value, str) or "{" not in node.value:
        return None
    try:
        template = compile_template(node.value)
    except TemplateError as error:
        return Site(node, role, None, error, **place)  # type: ignore[arg-type]
    return None if template.kind == "plain" else Site(node, role, template, None, **place)  # type: ignore[arg-type]


def _below(value: Value | None, role: Role, **place: object) -> Iterator[Site]:
    for node in scalars(value.at if value else None):
        site = _make(node, role, **place)
        if site:
            yield site


def _sites_of(values: dict[str, Value], role: Role, **place: object) -> Iterator[Site]:
    for name, value in values.items():
        yield from _below(value, role, field=name, **place)


def _writes(assigns: Iterable[Assign], role: Role, **place: object) -> Iterator[Site]:
    for assign in assigns:
        yield from _below(assign.value, role, field=assign.target, **place)


def _step_sites(step: Step, kinds: Kinds) -> Iterator[Site]:
    for rule in step.admit or ():
        yield from _below(rule.when, "admit", step=step)
    yield from _sites_of(step.spec, "step_spec", step=step)
    if step.loop:
        yield from _below(step.loop.items, "loop", step=step, field="in")
        yield from _sites_of(step.loop.spec, "loop", step=step)
        yield from _below(step.loop.item_timeout_ms, "loop", step=step)
        yield from _below(step.loop.total_timeout_ms, "loop", step=step)
        yield from _sites_of(step.loop.cursor or {}, "cursor", step=step)
    yield from _sites_of(step.input, "step_input", step=step)
    for task in step.tasks:
        yield from _task_sites(task, step, kinds)
    yield from _writes(step.sets, "step_set", step=step)
    for arc in step.arcs:
        yield from _below(arc.when, "arc_when", step=step, arc=arc)
        yield from _sites_of(arc.args, "arc_args", step=step, arc=arc)
        yield from _writes(arc.sets, "arc_set", step=step, arc=arc)


def _task_sites(task: Task, step: Step | None, kinds: Kinds, in_workbook: bool = False) -> Iterator[Site]:
    place: dict[str, object] = {"step": step, "task": task, "in_workbook": in_workbook}
    kind = kinds.get(task.kind)
    for name, value in task.fields.items():
        known = kind.input.field(name) if kind else None
        if known is None or known.type != Text(code="python"):
            yield from _below(value, "task_input", field=name, **place)
    yield from _sites_of(task.input, "task_input", **place)
    yield from _below(task.auth, "task_input", field="auth", **place)
    yield from _below(task.timeout_ms, "task_input", field="timeout_ms", **place)
    yield from _sites_of(task.spec, "task_input", **place)
    yield from _writes(task.sets, "task_set", **place)
    for rule in task.rules or ():
        yield from _below(rule.when, "task_rule", rule=rule, **place)
        then = rule.then
        for value in (then.attempts, then.delay, then.backoff, then.max_delay, then.jitter):
            if value is not None:
                yield from _below(value, "task_then", rule=rule, **place)
        yield from _writes(then.sets, "task_then", rule=rule, **place)
