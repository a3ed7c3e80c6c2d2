"""Static analysis of templates. Tested in tests/unit/expr/test_analysis.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from noetl.expr.lowering import tree
from noetl.expr.names import dotted

_NUMERIC_SIGNS: Final = frozenset({"-", "/", "//", "**"})
_EQUALITY_SIGNS: Final = frozenset({"==", "!=", "in", "not in"})
_EQUALITY_TESTS: Final = frozenset({"==", "!=", "eq", "ne", "equalto", "in", "sameas"})


def spliced_reads(node: Any, harmless: frozenset[str]) -> Iterator[tree.Reading]:
    """Iterate over the reads below a node or body that may reach its result unchanged.

    A comparison, a number or a value behind a `harmless` filter is not among them. Variables of the template are followed
    only to the value they are set from.
    """
    match node:
        case tree.Reading():
            yield node
        case tree.Apply(callee):
            if callee.kind == "filter" and callee.name not in harmless:
                yield from _each((node.value, node.arguments), harmless)
        case tree.Arithmetic(first, rest):
            yield from _each((first, *(part for sign, part in rest if sign not in _NUMERIC_SIGNS)), harmless)
        case tree.Choice(cases, otherwise):
            yield from _each((*(value for _, value in cases), otherwise), harmless)
        case tree.If(cases, otherwise):
            yield from _each((*(body for _, body in cases), otherwise), harmless)
        case tree.For(values=values, body=body, otherwise=otherwise):
            yield from _each((values, body, otherwise), harmless)
        case tree.Call(callee):
            if callee.pure and callee.name != "range":
                yield from spliced_reads(node.arguments, harmless)
        case tree.Item(base) | tree.Items(base) | tree.Range(base):
            yield from spliced_reads(base, harmless)
        case tree.Compare() | tree.Not() | tree.Unary() | tree.Fails() | tree.Refused():
            return
        case tuple():
            yield from _each(node, harmless)
        case _:
            yield from _each(_parts(node), harmless)


def _each(nodes: Iterable[Any], harmless: frozenset[str]) -> Iterator[tree.Reading]:
    for node in nodes:
        yield from spliced_reads(node, harmless)


def _parts(node: Any) -> Iterator[Any]:
    match node:
        case tree.Output(value) | tree.Set(_, value) | tree.SetField(_, _, value):
            yield value
        case tree.SetBlock(body=body, filters=filters):
            yield filters or body
        case tree.Sequence(items) | tree.Concat(items) | tree.All(items) | tree.AnyOf(items) | tree.Pairs(items):
            yield items
        case tree.Arguments():
            yield from (node.positional, tuple(value for _, value in node.keywords), node.more, node.more_keywords)
        case tree.Method(_, value, arguments):
            yield from (value, arguments)
        case tree.Get(read, fallback):
            yield from (read, fallback)
        case tree.Local(fallback=tree.Reading() as fallback):
            yield fallback


def values_compared(body: Any, path: str) -> frozenset[Any]:
    """Return the constants in `path == …`, `path in […]` and the like in `body`."""
    constants: set[Any] = set()
    for node in tree.parts_of(body):
        if isinstance(node, tree.Compare):
            left = node.first
            for sign, right in node.rest:
                if sign in _EQUALITY_SIGNS:
                    constants.update(_opposite(left, right, path))
                left = right
        elif isinstance(node, tree.Apply) and node.callee.name in _EQUALITY_TESTS and node.arguments.positional:
            constants.update(_opposite(node.value, node.arguments.positional[0], path))
    return frozenset(constants)


def _opposite(left: Any, right: Any, path: str) -> Iterator[Any]:
    for reading, other in ((left, right), (right, left)):
        if isinstance(reading, tree.Reading) and dotted(reading.path) == path:
            for item in other.items if isinstance(other, tree.Sequence) else (other,):
                if isinstance(item, tree.Const):
                    yield item.value
