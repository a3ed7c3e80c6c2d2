"""Finds the constants that a path is compared with. Tested in tests/unit/expr/test_compared.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from noetl.expr import tree
from noetl.expr.names import dotted

_SIGNS: Final = frozenset({"==", "!=", "in", "not in"})
_TESTS: Final = frozenset({"==", "!=", "eq", "ne", "equalto", "in", "sameas"})


def values_compared(body: Any, path: str) -> frozenset[Any]:
    """Constants in `path == …`, `path in […]` and the like, anywhere below `body`."""
    found: set[Any] = set()
    for node in tree.parts_of(body):
        if isinstance(node, tree.Compare):
            left = node.first
            for sign, right in node.rest:
                if sign in _SIGNS:
                    found.update(_opposite(left, right, path))
                left = right
        elif isinstance(node, tree.Apply) and node.callee.name in _TESTS and node.arguments.positional:
            found.update(_opposite(node.value, node.arguments.positional[0], path))
    return frozenset(found)


def _opposite(left: Any, right: Any, path: str) -> Iterator[Any]:
    for reading, other in ((left, right), (right, left)):
        if isinstance(reading, tree.Reading) and dotted(reading.path) == path:
            for item in other.items if isinstance(other, tree.Sequence) else (other,):
                if isinstance(item, tree.Const):
                    yield item.value
