"""Compare a document with the grammar in one walk and return every shape finding.

The files in `rules/` turn findings into diagnostics. Tested in tests/unit/dsl/checking/test_shape.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from msgspec import Struct

from noetl.dsl.checking.shape_findings import ACTION_FIELDS, SETS, ShapeFinding, settled
from noetl.dsl.diagnostic import Suggestions
from noetl.dsl.dialects import LegacyForm, keys_of, recognise
from noetl.dsl.dialects.other_tools import ForeignKey, foreign_key
from noetl.dsl.grammar import LEVELS, cursor_level, task_level, task_spec_level
from noetl.dsl.grammar.kinds import Kind, Kinds, Need
from noetl.dsl.grammar.misplaced_keys import Place, Places
from noetl.dsl.grammar.types import (
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
    fits,
)
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.normalize.subscription import is_subscription, trigger

__all__ = ["ShapeFinding", "compared", "findings", "fits", "is_template"]

_TASK_LEVELS = ("task", "workbook_task")
_RULE_LEVELS = ("task_rule", "admit_rule")
_SPECS = frozenset({"executor_spec", "step_spec", "loop_spec", "task_spec", "next_spec", "arc_spec"})
# Levels of a task policy, where an action is only misplaced.
_POLICY_LEVELS = frozenset({"task_policy", "task_rule", "task_else"})
_INSTEAD_OF_RULES = {"task_policy": ("defaults", "results"), "admit_policy": ("mode",)}
_PLACES = Places(LEVELS)
_PROSE = frozenset({"desc", "description"})


def findings(root: Node | None, kinds: Kinds, suggestions: Suggestions | None = None) -> tuple[ShapeFinding, ...]:
    """Return every position of a playbook that does not fit the grammar."""
    if root is None:
        return ()
    walk = _Walk(kinds, suggestions or Suggestions(), root)
    level = "subscription" if is_subscription(root) else "playbook"
    walk.value(root, LevelOf(level), None, LEVELS[level], "")
    if isinstance(root, MapNode) and level == "subscription":
        walk.meant(trigger(root))
    return settled(walk.findings) if walk.findings else ()


def compared(root: Node | None, level: Level) -> tuple[ShapeFinding, ...]:
    """Return every position of another document that does not fit its level."""
    if root is None:
        return ()
    walk = _Walk({}, Suggestions())
    walk.value(root, LevelOf(level.name, level), None, level, "")
    return settled(walk.findings)


def is_template(node: Node) -> bool:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        return False
    return "{" in node.value and ("{{" in node.value or "{%" in node.value)


class _TaskLevels(NamedTuple):
    task: Level
    spec: Level
    own: frozenset[str]  # names of the kind's inputs


class _Walk(Struct, frozen=True):
    """One walk over a document. Hot path: large playbooks have 10,000 values."""

    kinds: Kinds
    suggestions: Suggestions
    root: Node | None = None
    findings: list[ShapeFinding] = []
    known: dict[str, _TaskLevels] = {}

    def value(self, node: Node, kind: Type, field: Field | None, level: Level, name: str) -> None:
        """Check one value against its type; the most frequent cases come first."""
        shape = type(kind)
        if shape is Type:
            return
        if isinstance(kind, OneOf):
            picked = kind.pick(node) if kind.pick else None
            chosen = picked or next((option for option in kind.options if fits(node, option)), kind)
            if chosen is not kind:
                self.value(node, chosen, field, level, name)
                return
        if is_template(node) and not _may_hold_marks(kind, field, level):
            if field is None or not field.rendered:
                self.findings.append(ShapeFinding("not-templated", node, level, name, field, kind))
        elif not fits(node, kind):
            self.findings.append(ShapeFinding("wrong-type", node, level, name, field, kind))
        elif isinstance(kind, Text):
            if kind.length is not None and not is_template(node):
                self.within(node, kind, field, level, name)
        elif shape is not Flag:
            self.within(node, kind, field, level, name)

    def within(self, node: Node, kind: Type, field: Field | None, level: Level, name: str) -> None:
        if isinstance(kind, LevelOf):
            self.map(node, kind.own or LEVELS[kind.level])
        elif isinstance(kind, MapOf):
            if type(kind.value) is not Type and isinstance(node, MapNode):
                for entry in node.entries:
                    self.value(entry.value, kind.value, field, level, entry.key.text)
        elif isinstance(kind, ListOf):
            self.list(node, kind, field, level, name)
        elif (
            isinstance(kind, Choice | Number | Text)
            and isinstance(node, Scalar)
            and _is_out_of_bounds(node.value, kind)
        ):
            self.findings.append(ShapeFinding("bad-value", node, level, name, field, kind))

    def list(self, node: Node, kind: ListOf, field: Field | None, level: Level, name: str) -> None:
        if isinstance(node, ListNode):
            if len(node.items) < kind.least:
                self.findings.append(ShapeFinding("empty-list", node, level, name, field))
            for item in node.items:
                self.value(item, kind.item, field, level, name)

    def map(self, node: Node, level: Level) -> None:
        """Check the keys of a map against its level; a task uses the level of its kind."""
        if not isinstance(node, MapNode):
            return
        if level.name in _TASK_LEVELS:
            self.task(node, level)
            return
        name = level.name
        if name == "cursor":
            level = self.cursor(node, level)
        for entry in node.entries:
            self.entry(entry, node, level, name)
        self.missing(node, level)
        if level.name in _RULE_LEVELS:
            self.rule(node, level)

    def rule(self, node: MapNode, level: Level) -> None:
        condition = node.entry("when") if _is_written(node, "when") else node.entry("else")
        if condition is None:
            self.findings.append(ShapeFinding("incomplete", node, level, "when or else", owner=node))
        elif not _is_written(node, "then") and not (
            condition.key.text == "else" and isinstance(condition.value, MapNode)
        ):
            self.findings.append(ShapeFinding("incomplete", condition.key, level, "then", owner=node))

    def entry(self, entry: Entry, node: MapNode, level: Level, legacy: str, tool: Kind | None = None) -> None:
        name, value = entry.key.text, entry.value
        field = level.field(name)
        if field is None:
            self.stranger(entry, node, level, legacy, tool)
            return
        if isinstance(value, Scalar) and value.value is None:
            if field.required:
                self.findings.append(ShapeFinding("wrong-type", value, level, name, field, field.type))
            return
        if name != field.name and (_is_written(node, field.name) or _earlier_alias(node, field, name)):
            self.findings.append(ShapeFinding("twice", entry.key, level, name, field, owner=node))
        if field.required and tool is None and isinstance(value, Scalar) and not value.text.strip():
            self.findings.append(ShapeFinding("missing", value, level, name, field, field.type))
        elif type(field.type) is not Type:
            self.value(value, field.type, field, level, name)

    def stranger(self, entry: Entry, node: MapNode, level: Level, legacy: str, tool: Kind | None) -> None:
        """Classify a key without a field: an older form, misplaced, or unknown."""
        name, base = entry.key.text, level.name.partition(":")[0]
        form = recognise(legacy, entry, node)
        if form and not (form.shape and level.open):  # matched by shape alone, it may be an input of an unknown kind
            self.findings.append(ShapeFinding("legacy", entry.key, level, name, form=form, owner=node))
            self.inside(form, entry.value)
        elif name in SETS and base in _SPECS:
            self.findings.append(ShapeFinding("set-in-spec", entry.key, level, name, owner=node))
        elif level.open:
            return
        elif _is_control(base, name, entry.value):
            self.findings.append(ShapeFinding("control", entry.key, level, name, owner=node))
        elif foreign := self.foreign(entry, node, base):
            self.findings.append(
                ShapeFinding("unknown-key", entry.key, level, name, tool=tool, owner=node, foreign=foreign)
            )
        elif home := self.home(entry, node, base):
            self.findings.append(ShapeFinding("misplaced", entry.key, level, name, owner=node, place=home))
        else:
            meant = self.suggestions.nearest(name, level.names()) or self.older(name, node, legacy)
            self.findings.append(
                ShapeFinding("unknown-key", entry.key, level, name, tool=tool, owner=node, meant=meant)
            )

    def older(self, name: str, node: MapNode, legacy: str) -> str:
        """Return the closest key of an older form, where such forms are likely."""
        known = keys_of(legacy)
        if name in known or (legacy != "loop" and node.keys.isdisjoint(known)):
            return ""
        return self.suggestions.nearest(name, sorted(known)) or ""

    def inside(self, form: LegacyForm, node: Node) -> None:
        """Find older forms inside an older form, and nothing else."""
        if form.below and isinstance(node, ListNode):
            walk = _Walk(self.kinds, self.suggestions)
            for item in node.items:
                walk.map(item, LEVELS[form.below])
            self.findings.extend(finding for finding in walk.findings if finding.kind == "legacy")

    def foreign(self, entry: Entry, node: MapNode, level: str) -> ForeignKey | None:
        if level == "step" and self.is_tool_field(entry.key.text, node):
            return None
        return foreign_key("task" if level in _TASK_LEVELS else level, entry.key.text, entry.value)

    def home(self, entry: Entry, node: MapNode, level: str) -> Place | None:
        if level == "step" and self.is_tool_field(entry.key.text, node):
            return Place("step", "tool")
        return _PLACES.find(level, entry.key.text, entry.value)

    def is_tool_field(self, name: str, step: MapNode) -> bool:
        tool = step.get("tool")
        inner = tool.get("kind") if isinstance(tool, MapNode) else None
        named = inner or step.get("kind")
        if not isinstance(named, Scalar) or named.text not in self.kinds:
            return False
        return (name == "kind" and inner is None) or name in self.levels(self.kinds[named.text]).own

    def levels(self, kind: Kind) -> _TaskLevels:
        levels = self.known.get(kind.name)
        if levels is None:
            levels = _TaskLevels(task_level(kind), task_spec_level(kind), frozenset(kind.input.names()))
            self.known[kind.name] = levels
        return levels

    def cursor(self, node: MapNode, level: Level) -> Level:
        named = node.get("kind")
        kind = self.kinds.get(named.text) if isinstance(named, Scalar) else None
        return level if kind is None else cursor_level(kind)

    def task(self, node: MapNode, level: Level) -> None:
        inner = node.get("tool")
        if level.name == "workbook_task" and isinstance(inner, MapNode):
            self.around_a_task(node, level)
            self.task(inner, LEVELS["task"])
            return
        named = node.get("kind")
        kind = self.kinds.get(named.text) if isinstance(named, Scalar) else None
        levels = self.levels(kind) if kind else _TaskLevels(level, LEVELS["task_spec"], frozenset())
        for entry in node.entries:
            if entry.key.text == "spec" and isinstance(entry.value, MapNode):
                for inner_entry in entry.value.entries:
                    self.entry(inner_entry, entry.value, levels.spec, "task", kind)
            else:
                is_own = entry.key.text in levels.own or levels.task.field(entry.key.text) is None
                self.entry(entry, node, levels.task, "task", kind if is_own else None)
        if kind is None:
            self.missing(node, level)
        else:
            self.findings.extend(_missing_in_task(node, levels.task, kind, self.is_passed))

    def meant(self, node: MapNode | None) -> None:
        """Check the trigger that a subscription means, without repeating findings."""
        known = {id(finding.node) for finding in self.findings}
        inner = _Walk(self.kinds, self.suggestions)
        if node is not None:
            inner.map(node, LEVELS["trigger_subscription"])
        self.findings.extend(one for one in inner.findings if id(one.node) not in known and one.kind != "missing")

    def is_passed(self, name: str) -> bool:
        """Return whether any `input` or `args` of the document has a name."""
        return name in _passed(self.root)

    def around_a_task(self, node: MapNode, level: Level) -> None:
        for entry in node.entries:
            name = entry.key.text
            if name in ("name", "tool") or name in _PROSE:
                continue
            form = recognise("task", entry, node)
            if form:
                self.findings.append(ShapeFinding("legacy", entry.key, level, name, form=form, owner=node))
            elif level.field(name):
                home = Place("workbook_task", "tool")
                self.findings.append(ShapeFinding("misplaced", entry.key, level, name, owner=node, place=home))
            else:
                meant = self.suggestions.nearest(name, level.names()) or ""
                self.findings.append(ShapeFinding("unknown-key", entry.key, level, name, owner=node, meant=meant))

    def missing(self, node: MapNode, level: Level) -> None:
        instead = _INSTEAD_OF_RULES.get(level.name, ())
        for field in () if any(name in node for name in instead) else level.required:
            if field.name not in node and not any(name in node for name in field.aliases):
                self.findings.append(ShapeFinding("missing", node, level, field.name, field, field.type))


def _passed(node: Node | None) -> Iterator[str]:
    """Yield the names in every `input` and `args` of a document."""
    if isinstance(node, ListNode):
        for item in node.items:
            yield from _passed(item)
    for entry in node.entries if isinstance(node, MapNode) else ():
        if entry.key.text in ("input", "args") and isinstance(entry.value, MapNode):
            yield from (inner.key.text for inner in entry.value.entries)
        yield from _passed(entry.value)


def _may_hold_marks(kind: Type, field: Field | None, level: Level) -> bool:
    """Return whether template braces are allowed: in free and rendered values."""
    if not isinstance(kind, Text):
        return type(kind) is Type
    if field is None or kind.code or level.name.startswith("tools."):
        return True
    return bool(field.rendered) or field.name in _PROSE


def _is_control(level: str, name: str, value: Node) -> bool:
    """Return whether a key acts on a task's outcome at a level without one."""
    if level in _POLICY_LEVELS:
        return False
    if name == "rules":
        return level not in ("task", "task_spec") and isinstance(value, ListNode) and any(map(_acts, value))
    return name == "do" or (name in ACTION_FIELDS and level in ("admit_then", "admit_rule", "admit_else"))


def _acts(rule: Node) -> bool:
    if not isinstance(rule, MapNode):
        return False
    then = rule.get("then") or rule.get("else")
    return isinstance(then, MapNode) and ("do" in then or _acts(then))


def _earlier_alias(node: MapNode, field: Field, name: str) -> bool:
    order = [entry.key.text for entry in node if entry.key.text in field.aliases and not _is_null(entry.value)]
    return bool(order) and order[0] != name


def _is_written(node: MapNode, name: str) -> bool:
    value = node.get(name)
    return value is not None and not _is_null(value)


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None


def _missing_in_task(
    node: MapNode, level: Level, kind: Kind, is_passed: Callable[[str], bool]
) -> Iterator[ShapeFinding]:
    spec = node.get("spec")
    holders = (node, spec) if isinstance(spec, MapNode) else (node,)

    def written(field: Field, *, may_be_null: bool = False) -> Node | None:
        for holder in holders:
            for name in (field.name, *field.aliases):
                value = holder.get(name)
                if value is not None and (may_be_null or not _is_null(value)):
                    return value
        return None

    for field in level.required:  # a null is reported at its own position
        if not written(field, may_be_null=True):
            yield ShapeFinding("missing", node, level, field.name, field, field.type, kind)
    own = {field.name: field for field in kind.input.fields}
    for group in (*kind.one_of, *kind.at_most_one):
        present = [name for name in group if written(own[name])]
        if len(present) > 1:
            yield ShapeFinding("twice", node, level, " or ".join(present), tool=kind, owner=node)
        elif not present and group in kind.one_of:
            yield ShapeFinding("missing", node, level, " or ".join(group), tool=kind, owner=node)
    for need in kind.needs:
        if _applies(need, own[need.field], written(own[need.field])) and not any(map(is_passed, need.instead)):
            for field in (own[name] for name in need.fields if not written(own[name])):
                yield ShapeFinding("missing", node, level, field.name, field, field.type, kind)


def _applies(need: Need, field: Field, node: Node | None) -> bool:
    """Return whether a need applies; the value of a template is not known."""
    if need.value is None:
        return node is not None and not _is_null(node)
    if node is None or _is_null(node):
        return field.default == need.value
    return isinstance(node, Scalar) and node.value == need.value


def _is_finite(value: float) -> bool:
    try:
        return isfinite(value)
    except OverflowError:  # an integer with more than 308 digits
        return False


def _is_out_of_bounds(value: Any, kind: Choice | Number | Text) -> bool:
    if isinstance(kind, Text):
        fewest, most = kind.length or (0, None)
        return len(str(value)) < fewest or (most is not None and len(str(value)) > most)
    if isinstance(kind, Choice):
        return kind.meant(value) not in kind.words and not any(
            value.startswith(p) and value != p for p in kind.prefixes
        )
    if kind.finite and not _is_finite(value):
        return True
    low = kind.least is not None and value < kind.least
    high = kind.most is not None and value > kind.most
    return bool(low or high or (kind.integer and value != value // 1))
