"""Compares a document with the grammar: one walk, every misshapen place.

It says what is wrong in the grammar's terms; the files in `rules/` turn findings into diagnostics. It knows nothing of
names, templates or the net. Tested in tests/unit/dsl/test_shape.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from noetl.dsl.dialects import FORMS, LegacyForm
from noetl.dsl.grammar import LEVELS, task_level, task_spec_level
from noetl.dsl.kinds import Kind, Kinds, Need
from noetl.dsl.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.types import (
    Choice,
    Field,
    Flag,
    Level,
    LevelOf,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Text,
    Type,
)

ShapeKind = Literal[
    "unknown-key", "missing", "wrong-type", "bad-value", "twice", "legacy", "empty-list", "not-templated"
]
_TASK_LEVELS = ("task", "workbook_task")


@dataclass(frozen=True, slots=True)
class ShapeFinding:
    """One place that does not fit the grammar."""

    kind: ShapeKind
    node: Node  # what to point at
    level: Level
    name: str  # the key it is about
    field: Field | None = None
    expected: Type | None = None
    tool: Kind | None = None  # set where the level is a tool's own input
    form: LegacyForm | None = None
    owner: Node | None = None  # the map that holds the key


def findings(root: Node | None, kinds: Kinds) -> tuple[ShapeFinding, ...]:
    """Give every place of the document that does not fit the grammar."""
    if root is None:
        return ()
    return tuple(_Walk(kinds).value(root, LevelOf("playbook"), None, LEVELS["playbook"], ""))


def is_template(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, str) and ("{{" in node.value or "{%" in node.value)


def fits(node: Node, kind: Type) -> bool:
    """Tell whether a node has the outer shape that a type asks for."""
    match kind:
        case LevelOf() | MapOf():
            return isinstance(node, MapNode)
        case ListOf():
            return isinstance(node, ListNode)
        case Text():
            return isinstance(node, Scalar) and node.value is not None
        case Flag():
            return isinstance(node, Scalar) and isinstance(node.value, bool)
        case Number():
            return isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
        case Choice():
            return isinstance(node, Scalar) and isinstance(node.value, str)
        case OneOf(options):
            return any(fits(node, option) for option in options)
    return True


@dataclass(frozen=True, slots=True)
class _Walk:
    kinds: Kinds

    def value(self, node: Node, kind: Type, field: Field | None, level: Level, name: str) -> Iterator[ShapeFinding]:
        """Check one value against its type."""
        if isinstance(kind, OneOf):
            picked = kind.pick(node) if kind.pick else None
            chosen = picked or next((option for option in kind.options if fits(node, option)), None)
            if chosen is not None:
                yield from self.value(node, chosen, field, level, name)
                return
        if is_template(node) and not isinstance(kind, Text) and type(kind) is not Type:
            if field is None or not field.rendered:
                yield ShapeFinding("not-templated", node, level, name, field, kind)
            return
        if not fits(node, kind):
            yield ShapeFinding("wrong-type", node, level, name, field, kind)
            return
        match kind:
            case LevelOf(below, own):
                yield from self.map(node, own or LEVELS[below])
            case ListOf(item, least):
                yield from self.list(node, item, least, field, level, name)
            case MapOf(inner):
                if isinstance(node, MapNode):
                    for entry in node:
                        yield from self.value(entry.value, inner, field, level, entry.key.text)
            case Choice() | Number():
                yield from _bounds(node, kind, field, level, name)

    def list(
        self, node: Node, item: Type, least: int, field: Field | None, level: Level, name: str
    ) -> Iterator[ShapeFinding]:
        if not isinstance(node, ListNode):
            return
        if len(node.items) < least:
            yield ShapeFinding("empty-list", node, level, name, field)
        for element in node:
            yield from self.value(element, item, field, level, name)

    def map(self, node: Node, level: Level) -> Iterator[ShapeFinding]:
        """Check the keys of a map against its level; a task gets the level of its kind."""
        if not isinstance(node, MapNode):
            return
        if level.name in _TASK_LEVELS:
            yield from self.task(node, level)
            return
        for entry in node:
            yield from self.entry(entry, node, level, level.name)
        yield from _missing(node, level)

    def entry(
        self, entry: Entry, node: MapNode, level: Level, legacy: str, tool: Kind | None = None
    ) -> Iterator[ShapeFinding]:
        name = entry.key.text
        field = level.field(name)
        form = FORMS.get((legacy, name))
        if form and (field is None or (form.shape and tool is None)) and _is_form(form, entry.value):
            yield ShapeFinding("legacy", entry.key, level, name, form=form, owner=node)
        elif field is None:
            if not level.open:
                yield ShapeFinding("unknown-key", entry.key, level, name, tool=tool, owner=node)
        else:
            if name != field.name and (field.name in node or _earlier_alias(node, field, name)):
                yield ShapeFinding("twice", entry.key, level, name, field, owner=node)
            if not _is_null(entry.value):
                for found in self.value(entry.value, field.type, field, level, name):
                    yield found
            elif field.required:
                yield ShapeFinding("wrong-type", entry.value, level, name, field, field.type)

    def task(self, node: MapNode, level: Level) -> Iterator[ShapeFinding]:
        inner = node.get("tool")
        if level.name == "workbook_task" and isinstance(inner, MapNode):
            yield from self.task(inner, LEVELS["task"])
            return
        named = node.get("kind")
        kind = self.kinds.get(named.text) if isinstance(named, Scalar) else None
        full = task_level(kind) if kind else level
        own = frozenset(kind.input.names()) if kind else frozenset()
        for entry in node:
            if entry.key.text == "spec" and isinstance(entry.value, MapNode):
                below = task_spec_level(kind) if kind else LEVELS["task_spec"]
                for inner_entry in entry.value:
                    yield from self.entry(inner_entry, entry.value, below, "task", kind)
            else:
                tool = kind if entry.key.text in own or full.field(entry.key.text) is None else None
                yield from self.entry(entry, node, full, "task", tool)
        if kind is None:
            yield from _missing(node, level)
        else:
            yield from _missing_in_task(node, full, kind)


def _earlier_alias(node: MapNode, field: Field, name: str) -> bool:
    order = [entry.key.text for entry in node if entry.key.text in field.aliases]
    return bool(order) and order[0] != name


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _is_form(form: LegacyForm, node: Node) -> bool:
    shapes: dict[str, type[Node]] = {"map": MapNode, "list": ListNode, "scalar": Scalar}
    if form.shape and not isinstance(node, shapes[form.shape]):
        return False
    return not form.values or (isinstance(node, Scalar) and node.text in form.values)


def _missing(node: MapNode, level: Level) -> Iterator[ShapeFinding]:
    for field in level.fields:
        if field.required and not any(name in node for name in (field.name, *field.aliases)):
            yield ShapeFinding("missing", node, level, field.name, field, field.type)


def _missing_in_task(node: MapNode, level: Level, kind: Kind) -> Iterator[ShapeFinding]:
    """A kind's field may stand on the task or under its `spec`."""
    spec = node.get("spec")
    places = (node, spec) if isinstance(spec, MapNode) else (node,)

    def written(field: Field) -> Node | None:
        names = (field.name, *field.aliases)
        return next((value for place in places for name in names if (value := place.get(name))), None)

    for field in level.fields:
        if field.required and not written(field):
            yield ShapeFinding("missing", node, level, field.name, field, field.type, kind)
    own = {field.name: field for field in kind.input.fields}
    for group in (*kind.one_of, *kind.at_most_one):
        found = [name for name in group if written(own[name])]
        if len(found) > 1:
            yield ShapeFinding("twice", node, level, " or ".join(found), tool=kind, owner=node)
        elif not found and group in kind.one_of:
            yield ShapeFinding("missing", node, level, " or ".join(group), tool=kind, owner=node)
    for need in kind.needs:
        if _applies(need, own[need.field], written(own[need.field])):
            for field in (own[name] for name in need.fields if not written(own[name])):
                yield ShapeFinding("missing", node, level, field.name, field, field.type, kind)


def _applies(need: Need, field: Field, node: Node | None) -> bool:
    """Tell whether a need holds; what a template will give is not known."""
    if need.value is None:
        return node is not None and not _is_null(node)
    if node is None or _is_null(node):
        return field.default == need.value
    return isinstance(node, Scalar) and node.value == need.value


def _bounds(node: Node, kind: Type, field: Field | None, level: Level, name: str) -> Iterator[ShapeFinding]:
    if not isinstance(node, Scalar):
        return
    value = node.value
    if isinstance(kind, Choice):
        if value not in kind.words and not any(value.startswith(p) and value != p for p in kind.prefixes):
            yield ShapeFinding("bad-value", node, level, name, field, kind)
    elif isinstance(kind, Number):
        low = kind.least is not None and value < kind.least
        high = kind.most is not None and value > kind.most
        if low or high or (kind.integer and value != value // 1):
            yield ShapeFinding("bad-value", node, level, name, field, kind)
