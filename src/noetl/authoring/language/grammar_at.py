"""What the grammar expects at an offset: enclosing map, field and type.

Descends from the root by offset and chooses levels like the shape checks, but leniently: while typing, a task has no kind
and a label has no task. Tested in tests/unit/authoring/language/test_grammar_at.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from noetl.dsl.checking.shape import fits
from noetl.dsl.grammar import LEVELS, cursor_level, task_level, task_spec_level
from noetl.dsl.grammar.kinds import Kind, Kinds
from noetl.dsl.grammar.types import Field, Level, LevelOf, ListOf, MapOf, OneOf, Type
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.tree.normalize.subscription import is_subscription

_TASKS = ("task", "workbook_task")
_ANY = Type()


@dataclass(frozen=True, slots=True)
class Spot:
    """Node at an offset, and what the grammar expects there."""

    node: Node  # innermost node: a key, a value, or a collection around a gap
    type: Type  # type of the value, also for its key
    level: Level | None = None  # of the enclosing map; None if its keys are free
    owner: MapNode | None = None  # the enclosing map
    field: Field | None = None  # field at this position
    key: str = ""  # its name as written
    is_key: bool = False
    tool: Kind | None = None  # kind of the task or spec
    path: tuple[str, ...] = ()  # keys from the root, without list indexes
    also: tuple[Level, ...] = ()  # for a key: other levels that the enclosing map may still become

    @property
    def node_style(self) -> str:
        """The node's quote character, if any."""
        return self.node.style if isinstance(self.node, Scalar) and self.node.style in ("'", '"') else ""

    @property
    def level_name(self) -> str:
        """The level's name; `task` and `task_spec` for every kind."""
        return self.level.name.partition(":")[0] if self.level else ""


def spot_at(root: Node | None, kinds: Kinds, offset: int) -> Spot | None:
    """Return the innermost position of a document that covers an offset."""
    if root is None or not root.start <= offset <= root.end:
        return None
    level = "subscription" if is_subscription(root) else "playbook"
    return _down(Spot(root, LevelOf(level)), kinds, offset)


def options(kind: Type) -> Iterator[Type]:
    """Iterate over the alternatives of a type, recursively."""
    if isinstance(kind, OneOf):
        for option in kind.options:
            yield from options(option)
    else:
        yield kind


def level_of(kind: LevelOf) -> Level:
    return kind.own or LEVELS[kind.level]


def _down(spot: Spot, kinds: Kinds, offset: int) -> Spot:
    node = spot.node
    if isinstance(node, ListNode):
        kind = _choose(node, spot.type, offset)
        inner = kind.item if isinstance(kind, ListOf) else _ANY
        for item in node:
            if item.start <= offset <= item.end:
                return _down(replace(spot, node=item, type=inner, owner=None), kinds, offset)
    elif isinstance(node, MapNode):
        return _in_map(spot, node, kinds, offset)
    return spot


def _in_map(spot: Spot, node: MapNode, kinds: Kinds, offset: int) -> Spot:
    level, tool, free = _level(spot, node, kinds, offset)
    here = replace(spot, level=level, owner=node, tool=tool)
    for entry in node:
        if entry.key.start <= offset <= entry.key.end:
            return replace(_enter(here, entry, entry.key, free), also=(*_alternatives(spot.type, node, entry),))
        if entry.value.start <= offset <= entry.value.end:
            return _down(_enter(here, entry, entry.value, free), kinds, offset)
    return here


def _enter(here: Spot, entry: Entry, part: Node, free: Type) -> Spot:
    name = entry.key.text
    field = here.level.field(name) if here.level else None
    kind = field.type if field else free
    if field is not None and field.name == "spec" and here.tool is not None and here.level_name in _TASKS:
        kind = LevelOf(f"task_spec:{here.tool.name}", task_spec_level(here.tool))
    path = (*here.path, name)
    return replace(here, node=part, type=kind, field=field, key=name, is_key=part is entry.key, path=path)


def _level(spot: Spot, node: MapNode, kinds: Kinds, offset: int) -> tuple[Level | None, Kind | None, Type]:
    kind = _choose(node, spot.type, offset)
    if isinstance(kind, MapOf):
        return None, None, kind.value
    if not isinstance(kind, LevelOf):
        return None, None, _ANY
    level = level_of(kind)
    if level.name in _TASKS:
        named = node.get("kind")
        tool = kinds.get(named.text) if isinstance(named, Scalar) else None
        if tool is not None:
            return task_level(tool), tool, _ANY
    if level.name == "cursor":
        named = node.get("kind")
        tool = kinds.get(named.text) if isinstance(named, Scalar) else None
        return (level if tool is None else cursor_level(tool)), None, _ANY
    return level, spot.tool if level.name.startswith("task_spec:") else None, _ANY


def _alternatives(kind: Type, node: MapNode, key: Entry) -> Iterator[Level]:
    """Yield the levels that a map may have by its keys, ignoring the one being typed."""
    for option in options(kind):
        level = level_of(option) if isinstance(option, LevelOf) else None
        if level is None or level.name in _TASKS:
            continue
        if all(level.field(entry.key.text) for entry in node if entry is not key):
            yield level


def _choose(node: Node, kind: Type, offset: int) -> Type:
    """Return the alternative that a node was written as, or is about to become."""
    if not isinstance(kind, OneOf):
        return kind
    labelled = next((option for option in options(kind) if _takes_labels(option)), None)
    if labelled is not None and _is_new_label(node, offset):
        return labelled
    picked = kind.pick(node) if kind.pick else None
    chosen = picked or next((option for option in kind.options if fits(node, option)), _ANY)
    return _choose(node, chosen, offset) if isinstance(chosen, OneOf) else chosen


def _takes_labels(kind: Type) -> bool:
    return isinstance(kind, MapOf) and isinstance(kind.value, LevelOf) and kind.value.level in _TASKS


def _is_new_label(node: Node, offset: int) -> bool:
    """Whether a map is a label without a task yet, with the cursor after the label."""
    if not isinstance(node, MapNode) or len(node.entries) != 1:
        return False
    (key, value), task = node.entries[0], LEVELS["task"]
    return isinstance(value, Scalar) and offset > key.end and task.field(key.text) is None
