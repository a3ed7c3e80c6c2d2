"""What a comparison with the grammar finds, and which of it only follows from something else.

Findings are made by `shape` and told by the files in `rules/`. Tested in tests/unit/dsl/test_shape.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.dialects import LegacyForm
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.places import Place
from noetl.dsl.kinds import Kind
from noetl.dsl.nodes import Node
from noetl.dsl.types import Field, Level, Type

ShapeKind = Literal[
    "unknown-key",
    "misplaced",
    "control",
    "set-in-spec",
    "missing",
    "incomplete",
    "wrong-type",
    "bad-value",
    "twice",
    "legacy",
    "empty-list",
    "not-templated",
]
SETS = frozenset({"set", "set_ctx", "set_iter"})
ACTION_FIELDS = frozenset(LEVELS["task_then"].names()) - SETS


class ShapeFinding(Struct, frozen=True):
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
    place: Place | None = None  # where a misplaced key belongs
    others: tuple[str, ...] = ()  # keys of the same map that belong to the same place
    meant: str = ""  # the name that an unknown key is most like


def stand_ins(found: Iterable[ShapeFinding]) -> frozenset[tuple[int, str]]:
    """Give the fields that a misspelled, misplaced or older key stands in for, as (id of the map, name of the field)."""
    return frozenset((id(one.owner), name) for one in found if (name := _stands_for(one)))


def _stands_for(finding: ShapeFinding) -> str:
    if finding.form:
        return finding.form.replaces
    if finding.place:
        return finding.place.stands_for
    known = finding.level.field(finding.meant)
    return known.name if known else ""


def settled(found: list[ShapeFinding]) -> tuple[ShapeFinding, ...]:
    """Leave out what only follows from another finding, so that one mistake is told once."""
    instead = stand_ins(found)
    absorbing = {id(one.owner) for one in found if one.form and one.form.absorbs}
    actions = {id(one.owner) for one in found if one.kind == "control" and one.name == "do"}
    settled: list[ShapeFinding] = []
    moves: dict[tuple[int, Place], int] = {}
    for one in found:
        owner = id(one.owner)
        if one.kind in ("missing", "incomplete") and _has_stand_in(one, instead):
            continue
        if one.kind in ("unknown-key", "misplaced") and owner in absorbing:
            continue
        if one.name in ACTION_FIELDS and one.name != "do" and owner in actions:
            continue
        if one.place is not None:
            first = moves.setdefault((owner, one.place), len(settled))
            if first < len(settled):
                settled[first] = replace(settled[first], others=(*settled[first].others, one.name))
                continue
        settled.append(one)
    return tuple(settled)


def _has_stand_in(finding: ShapeFinding, instead: frozenset[tuple[int, str]]) -> bool:
    holder = id(finding.owner if finding.kind == "incomplete" else finding.node)
    return any((holder, name) in instead for name in finding.name.split(" or "))
