"""Gathers the words that stand in misshapen places, so that one mistake is told once.

A step, a label or a key that is written under a misspelled or an older key exists for its author. Rules about names stay
silent about such words: the misspelled key is told already. Tested in tests/unit/dsl/rules/test_names.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.shape import ShapeFinding

_AT_THE_VALUE = frozenset({"wrong-type", "not-templated"})
_ASTRAY = frozenset({"unknown-key", "misplaced", "control", "set-in-spec", "legacy"})
_HIDING = _AT_THE_VALUE | _ASTRAY | {"twice"}
_WITH_ROLES = frozenset({"spec", "set", "set_ctx", "set_iter", "policy", "output"})
_ROUTING = frozenset({"next", "next_spec", "arc"})
_LONGEST_NAME = 100


def obscured(findings: Iterable[ShapeFinding]) -> frozenset[str]:
    """Give every key and every short value at or below the places that do not fit the grammar."""
    return frozenset(
        word
        for finding in findings
        if finding.kind in _HIDING
        for part in _hidden_parts(finding)
        for word in _words(part)
    )


def stray_ranges(findings: Iterable[ShapeFinding]) -> list[tuple[int, int]]:
    """Give the ranges of the values under keys that belong elsewhere or nowhere; a tool's own fields are not among them."""
    return [
        (part.start, part.end)
        for finding in findings
        if finding.kind in _ASTRAY and (finding.tool is None or finding.meant in _WITH_ROLES)
        for part in _hidden_parts(finding)
        if part is not None
    ]


def hides_routing(finding: ShapeFinding) -> bool:
    """Tell whether a misshapen place may hold a part of the routing: an arc, its condition, the mode of a router."""
    if finding.level.name in _ROUTING or finding.name in _ROUTING:
        return True
    return finding.place is not None and not _ROUTING.isdisjoint((finding.place.level, *finding.place.path.split(".")))


def _hidden_parts(finding: ShapeFinding) -> Iterator[Node | None]:
    if isinstance(finding.owner, MapNode):
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
