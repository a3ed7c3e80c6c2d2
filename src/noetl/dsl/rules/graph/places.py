"""Finds the key in the source that a diagnostic about a whole section points at."""

from __future__ import annotations

from noetl.dsl.nodes import MapNode, Node, Scalar


def key(node: Node | None, *path: str) -> Scalar | None:
    """Give the last key of a path of keys; None where the path is not there."""
    found: Scalar | None = None
    for name in path:
        entry = node.entry(name) if isinstance(node, MapNode) else None
        if entry is None:
            return None
        found, node = entry.key, entry.value
    return found
