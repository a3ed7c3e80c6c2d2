"""Gathers the words that stand in misshapen places, so that one mistake is told once.

A step, a label or a key that is written under a misspelled or an older key exists for its author. Rules about names stay
silent about such words: the misspelled key is told already. Tested in tests/unit/dsl/rules/test_names.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from noetl.dsl.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.shape import ShapeFinding

_HIDING = frozenset({"unknown-key", "legacy", "twice", "wrong-type"})
_LONGEST_NAME = 100


def obscured(findings: Iterable[ShapeFinding]) -> frozenset[str]:
    """Give every key and every short value at or below the places that do not fit the grammar."""
    return frozenset(
        word for finding in findings if finding.kind in _HIDING for word in _words(_hidden_part(finding))
    )


def _hidden_part(finding: ShapeFinding) -> Node | None:
    if isinstance(finding.owner, MapNode):
        return finding.owner.get(finding.name)
    return finding.node if finding.kind == "wrong-type" else None


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
