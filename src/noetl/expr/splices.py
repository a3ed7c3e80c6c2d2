"""Finds the reads whose text may stand in the result of a template just as it came.

A comparison, a number or a value behind a filter that makes it harmless is not among them. Which filters do that depends
on where the result goes, so the caller names them. Variables of the template are followed only to what they are set from.
Tested in tests/unit/expr/test_splices.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from noetl.expr import tree

_NUMERIC_SIGNS: Final = frozenset({"-", "/", "//", "**"})


def spliced(node: Any, harmless: frozenset[str]) -> Iterator[tree.Reading]:
    """Give the reads below a node or a body that reach its result by no harmless filter."""
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
                yield from spliced(node.arguments, harmless)
        case tree.Item(base) | tree.Items(base) | tree.Range(base):
            yield from spliced(base, harmless)
        case tree.Compare() | tree.Not() | tree.Unary() | tree.Fails() | tree.Refused():
            return
        case tuple():
            yield from _each(node, harmless)
        case _:
            yield from _each(_parts(node), harmless)


def _each(nodes: Iterable[Any], harmless: frozenset[str]) -> Iterator[tree.Reading]:
    for node in nodes:
        yield from spliced(node, harmless)


def _parts(node: Any) -> Iterator[Any]:
    """Give what a node is made of, where all of it may be seen in the result."""
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
