"""Reads of a template: paths into the scope, offsets, and which may be missing.

After `x.y is defined and …`, a missing `x.y` is expected (`facts`). Tested in tests/unit/expr/lowering/test_reads.py.
"""

from __future__ import annotations

from typing import Final

from jinja2 import nodes
from msgspec import Struct

from noetl.expr.runtime.undefined import Path

LOOKUPS: Final = (nodes.Getattr, nodes.Getitem)
_CHAINS: Final = (nodes.And, nodes.Or)
_NONE: Final[frozenset[Path]] = frozenset()


class Read(Struct, frozen=True):
    path: Path
    offset: int
    offsets: tuple[int, ...]
    dynamic: bool = False
    guarded: bool = False
    called: bool = False


def constant_key(node: nodes.Node) -> str | int | None:
    """Return a lookup's key if it is a literal string or integer."""
    if isinstance(node, nodes.Neg) and isinstance(node.node, nodes.Const) and type(node.node.value) is int:
        return -node.node.value
    if isinstance(node, nodes.Const) and type(node.value) in {str, int}:
        key: str | int = node.value
        return key
    return None


def constant_path(node: nodes.Node) -> Path | None:
    """Return the path, if the expression is nothing but a path."""
    keys: list[str | int] = []
    while isinstance(node, LOOKUPS):
        key = node.attr if isinstance(node, nodes.Getattr) else constant_key(node.arg)
        if key is None:
            return None
        keys.append(key)
        node = node.node
    if not isinstance(node, nodes.Name):
        return None
    return (node.name, *reversed(keys))


def operands(node: nodes.BinExpr) -> list[nodes.Expr]:
    """Return the operands of a chain of `and` or `or` in order, iteratively."""
    kind, parts = type(node), []
    left: nodes.Expr = node
    while isinstance(left, kind):
        parts.append(left.right)
        left = left.left
    parts.append(left)
    return parts[::-1]


def facts(node: nodes.Node, truth: bool) -> frozenset[Path]:
    """Return paths that exist if `node` is true (with `truth` false: if it is false)."""
    if isinstance(node, nodes.Not):
        return facts(node.node, not truth)
    if isinstance(node, _CHAINS):
        if truth is not isinstance(node, nodes.And):
            return _NONE
        return frozenset().union(*(facts(part, truth) for part in operands(node)))
    if isinstance(node, nodes.Test):
        path = constant_path(node.node)
        holds = truth if node.name != "undefined" else not truth
        return frozenset({path}) if path is not None and holds and node.name != "ne" else _NONE
    if isinstance(node, nodes.Compare):
        return _compared(node) if truth else _NONE
    path = constant_path(node) if truth else None
    return frozenset({path}) if path is not None else _NONE


def _compared(node: nodes.Compare) -> frozenset[Path]:
    found: set[Path] = set()
    left: nodes.Node = node.expr
    for operand in node.ops:
        right = operand.expr
        if operand.op not in {"ne", "notin"}:
            path, other = constant_path(left), constant_path(right)
            if path is not None:
                found.add(path)
            if other is not None and operand.op == "in" and isinstance(left, nodes.Const):
                found.add((*other, left.value))
            elif other is not None:
                found.add(other)
        left = right
    return frozenset(found)
