"""Shape findings, and what they hide from other rules.

`shape` makes the findings and the files in `rules/` report them. A step, a label or a key that is written under a misspelled
or an older key exists for its author, so rules about names ignore such words: one mistake is reported once.
Tested in tests/unit/dsl/checking/test_shape.py and tests/unit/dsl/rules/test_names.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.dialects import FORMS, LegacyForm
from noetl.dsl.dialects.other_tools import ForeignKey
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.misplaced_keys import Place
from noetl.dsl.grammar.types import Field, Level, Type
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar

ShapeKind = Literal[
    "unknown-key", "misplaced", "control", "set-in-spec", "missing", "incomplete", "wrong-type", "bad-value", "twice",
    "legacy", "empty-list", "not-templated",
]  # fmt: skip
SETS = frozenset({"set", "set_ctx", "set_iter"})
ACTION_FIELDS = frozenset(LEVELS["task_then"].names()) - SETS

_AT_THE_VALUE = frozenset({"wrong-type", "not-templated"})
STRAY = frozenset({"unknown-key", "misplaced", "control", "set-in-spec", "legacy"})
_HIDING = _AT_THE_VALUE | STRAY | {"twice", "missing"}
# Without this field, normalization drops the whole map and every name in it.
_NAMED_BY = {"step": "step", "arc": "step", "keychain": "name"}
_WITH_ROLES = frozenset({"spec", "set", "set_ctx", "set_iter", "policy", "output"})
_ROUTING = frozenset({"next", "next_spec", "arc"})
_LONGEST_NAME = 100


class ShapeFinding(Struct, frozen=True):
    """One position that does not fit the grammar."""

    kind: ShapeKind
    node: Node  # what to point at
    level: Level
    name: str  # the key it is about
    field: Field | None = None
    expected: Type | None = None
    tool: Kind | None = None  # set where the level is a tool's own input
    form: LegacyForm | None = None
    owner: Node | None = None  # the map that holds the key
    place: Place | None = None  # where a misplaced key belongs
    others: tuple[str, ...] = ()  # keys of the same map that belong to the same place
    foreign: ForeignKey | None = None  # the key of another tool
    meant: str = ""  # the known name closest to an unknown key


def stand_ins(findings: Iterable[ShapeFinding]) -> frozenset[tuple[int, str]]:
    """Return the fields that wrong keys stand in for, as (id of the map, name)."""
    return frozenset((id(finding.owner), name) for finding in findings if (name := _stands_for(finding)))


def _stands_for(finding: ShapeFinding) -> str:
    if finding.form:
        return finding.form.replaces
    if finding.foreign:
        return finding.foreign.replaces
    if finding.place:
        return finding.place.stands_for
    known = finding.level.field(finding.meant)
    if known:
        return known.name
    return next((form.replaces for form in FORMS.get((finding.level.name, finding.meant), ())), "")


def settled(findings: list[ShapeFinding]) -> tuple[ShapeFinding, ...]:
    """Drop findings that follow from another one: report a mistake once."""
    instead = stand_ins(findings)
    absorbing = {id(finding.owner) for finding in findings if finding.form and finding.form.absorbs}
    actions = {id(finding.owner) for finding in findings if finding.kind == "control" and finding.name == "do"}
    kept: list[ShapeFinding] = []
    moves: dict[tuple[int, Place], int] = {}
    for finding in findings:
        owner = id(finding.owner)
        if finding.kind in ("missing", "incomplete") and _has_stand_in(finding, instead):
            continue
        if finding.kind in ("unknown-key", "misplaced") and owner in absorbing:
            continue
        if finding.name in ACTION_FIELDS and finding.name != "do" and owner in actions:
            continue
        if finding.place is not None:
            first = moves.setdefault((owner, finding.place), len(kept))
            if first < len(kept):
                kept[first] = replace(kept[first], others=(*kept[first].others, finding.name))
                continue
        kept.append(finding)
    return tuple(kept)


def _has_stand_in(finding: ShapeFinding, instead: frozenset[tuple[int, str]]) -> bool:
    holder = id(finding.owner if finding.kind == "incomplete" else finding.node)
    return any((holder, name) in instead for name in finding.name.split(" or "))


def obscured(findings: Iterable[ShapeFinding]) -> frozenset[str]:
    """Return every key and short value at or below a finding."""
    return frozenset(
        word
        for finding in findings
        if finding.kind in _HIDING
        for part in _hidden_parts(finding)
        for word in _words(part)
    )


def stray_ranges(findings: Iterable[ShapeFinding]) -> list[tuple[int, int]]:
    """Return the ranges of values under stray keys, except a tool's own fields."""
    return [
        (part.start, part.end)
        for finding in findings
        if finding.kind in STRAY and (finding.tool is None or finding.meant in _WITH_ROLES)
        for part in _hidden_parts(finding)
        if part is not None
    ]


def hides_routing(finding: ShapeFinding) -> bool:
    """Return whether a finding may hide an arc, its condition or a router's mode."""
    if finding.level.name in _ROUTING or finding.name in _ROUTING or (finding.foreign and finding.foreign.routes):
        return True
    return finding.place is not None and not _ROUTING.isdisjoint((finding.place.level, *finding.place.path.split(".")))


def _hidden_parts(finding: ShapeFinding) -> Iterator[Node | None]:
    if _NAMED_BY.get(finding.level.name) in (finding.name, finding.meant):
        yield finding.owner or finding.node
    elif finding.kind == "missing":
        return
    elif isinstance(finding.owner, MapNode):
        yield from map(finding.owner.get, (finding.name, *finding.others))
    elif finding.kind in _AT_THE_VALUE:
        yield finding.node


def _words(node: Node | None) -> Iterator[str]:
    if isinstance(node, Scalar):
        if len(node.text) <= _LONGEST_NAME:
            yield node.text
    elif isinstance(node, MapNode):
        for entry in node:
            yield from entry.key.text.split(".")
            yield from _words(entry.value)
    elif isinstance(node, ListNode):
        for item in node:
            yield from _words(item)
