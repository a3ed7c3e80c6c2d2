"""Find every template of a playbook with its position and role.

Text with a stray `}}` counts as one: its author meant a template. Text that is never rendered, such as python code, is not
included. Tested in tests/unit/dsl/analysis/test_templates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from noetl.dsl.analysis.braces import stray_end
from noetl.dsl.diagnostic import Suggestions
from noetl.dsl.grammar.kinds import Kind, Kinds
from noetl.dsl.grammar.types import Field, LevelOf, ListOf, OneOf, Type
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.playbook import Arc, Assign, Playbook, Step, Task, TaskRule, Value
from noetl.expr import Template, TemplateError, compile_template

Role = Literal[
    "workload", "keychain", "executor", "admit", "loop", "cursor", "step_input", "step_spec",
    "task_input", "task_rule", "task_then", "task_set", "step_set", "arc_when", "arc_args", "arc_set",
]  # fmt: skip
# Free text that may only look like a template, such as a JSON Schema.
_NOT_RENDERED = frozenset({"workload_schema"})
# Fields that hold code even where the kind is unknown.
_CODE = frozenset({"code", "code_b64"})


class TemplateSite(Struct, frozen=True, eq=False):
    """One template and its position."""

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


class _Place(NamedTuple):
    step: Step | None = None
    task: Task | None = None
    arc: Arc | None = None
    rule: TaskRule | None = None
    in_workbook: bool = False


_ROOT = _Place()


class _Fields:
    """The inputs of tool kinds, also by names close to theirs."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self._suggestions = Suggestions()

    def field(self, kind: Kind, name: str) -> Field | None:
        found = kind.input.field(name)
        if found is None and not kind.input.open:
            meant = self._suggestions.nearest(name, kind.input.names)
            return kind.input.field(meant) if meant else None
        return found


def sites(playbook: Playbook, kinds: Kinds) -> tuple[TemplateSite, ...]:
    """Return every template of the playbook, part by part in file order."""
    templates: list[TemplateSite] = [*_entries(playbook.workload, "workload", _ROOT)]
    templates += _entries(playbook.executor.spec, "executor", _ROOT)
    for entry in playbook.keychain:
        templates += _entries(entry.fields, "keychain", _ROOT)
    known = _Fields(kinds)
    for task in playbook.workbook:
        templates += _task_sites(task, _Place(task=task, in_workbook=True), known)
    for step in playbook.workflow:
        templates += _step_sites(step, known)
    return tuple(templates)


def scalars(node: Node | None) -> Iterator[Scalar]:
    """Yield every scalar value at or below a node, in order."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, MapNode):
        for entry in node:
            yield from scalars(entry.value)
    elif isinstance(node, ListNode):
        for item in node:
            yield from scalars(item)


def _below(nodes: Iterable[Scalar], role: Role, place: _Place, field: str) -> Iterator[TemplateSite]:
    for node in nodes:
        if not isinstance(node.value, str) or ("{" not in node.value and "}}" not in node.value):
            continue
        template: Template | None = None
        error: TemplateError | None = None
        try:
            template = compile_template(node.value)
        except TemplateError as problem:
            error = problem
        if template is None or template.kind != "plain" or stray_end(node.value) is not None:
            step, task, arc, rule, in_workbook = place
            yield TemplateSite(node, role, template, error, step, task, arc, rule, field, in_workbook)


def _one(value: Value | None, role: Role, place: _Place, field: str = "") -> Iterator[TemplateSite]:
    return _below(scalars(value.at if value else None), role, place, field)


def _entries(values: Mapping[str, Value], role: Role, place: _Place) -> Iterator[TemplateSite]:
    for name, value in values.items():
        if name not in _NOT_RENDERED:
            yield from _one(value, role, place, name)


def _writes(assigns: Iterable[Assign], role: Role, place: _Place) -> Iterator[TemplateSite]:
    for assign in assigns:
        yield from _one(assign.value, role, place, assign.target)


def _step_sites(step: Step, known: _Fields) -> Iterator[TemplateSite]:
    place = _Place(step)
    for rule in step.admit or ():
        yield from _one(rule.when, "admit", place)
    for name, value in step.spec.items():
        # The node of the policy includes the gate, whose templates have another role.
        parts = _without(value.at, "admit") if name == "policy" else [value.at]
        for part in parts:
            yield from _below(scalars(part), "step_spec", place, name)
    if step.loop:
        yield from _one(step.loop.items, "loop", place, "in")
        yield from _entries(step.loop.spec, "loop", place)
        yield from _one(step.loop.item_timeout_ms, "loop", place, "item_timeout_ms")
        yield from _one(step.loop.total_timeout_ms, "loop", place, "total_timeout_ms")
        yield from _entries(step.loop.cursor or {}, "cursor", place)
    yield from _entries(step.input, "step_input", place)
    for task in step.tasks:
        yield from _task_sites(task, _Place(step, task), known)
    yield from _writes(step.sets, "step_set", place)
    for arc in step.arcs:
        yield from _arc_sites(arc, _Place(step, arc=arc))


def _without(node: Node | None, name: str) -> list[Node]:
    return [entry.value for entry in node if entry.key.text != name] if isinstance(node, MapNode) else []


def _arc_sites(arc: Arc, place: _Place) -> Iterator[TemplateSite]:
    yield from _one(arc.when, "arc_when", place)
    yield from _entries(arc.args, "arc_args", place)
    yield from _writes(arc.sets, "arc_set", place)


def _task_sites(task: Task, place: _Place, known: _Fields) -> Iterator[TemplateSite]:
    kind = known.kinds.get(task.kind)
    for name, value in task.fields.items():
        field = known.field(kind, name) if kind else None
        if field is None and (kind is not None or name not in _CODE):
            yield from _one(value, "task_input", place, name)
        elif field is not None and field.rendered:
            yield from _below(_rendered(value.at, field.type), "task_input", place, name)
    yield from _entries(task.input, "task_input", place)
    yield from _one(task.auth, "task_input", place, "auth")
    yield from _one(task.timeout_ms, "task_input", place, "timeout_ms")
    yield from _entries(task.spec, "task_input", place)
    yield from _writes(task.sets, "task_set", place)
    for rule in task.rules or ():
        here = place._replace(rule=rule)
        yield from _one(rule.when, "task_rule", here)
        then = rule.then
        for name in ("attempts", "delay", "backoff", "max_delay", "jitter"):
            yield from _one(getattr(then, name), "task_then", here, name)
        yield from _writes(then.sets, "task_then", here)


def _rendered(node: Node | None, kind: Type) -> Iterator[Scalar]:
    options = kind.options if isinstance(kind, OneOf) else (kind,)
    if isinstance(node, MapNode):
        level = next((option.own for option in options if isinstance(option, LevelOf)), None)
        for entry in node:
            known = level.field(entry.key.text) if level else None
            if known is None or known.rendered:
                yield from _rendered(entry.value, known.type if known else Type())
    elif isinstance(node, ListNode):
        item = next((option.item for option in options if isinstance(option, ListOf)), Type())
        for below in node:
            yield from _rendered(below, item)
    elif isinstance(node, Scalar):
        yield node
