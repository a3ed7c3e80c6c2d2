"""Describe types and values in messages."""

from __future__ import annotations

from collections.abc import Sequence

from noetl.dsl.grammar.types import Choice, Flag, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar

_LONGEST = 40


def takes(kind: Type) -> str:
    """Describe what a field of this type takes: "a whole number of 1 or more"."""
    match kind:
        case Text(length=(fewest, most)):
            return f"text of {fewest} to {most} characters"
        case Text():
            return "text"
        case Flag():
            return "true or false"
        case Number():
            return _number(kind)
        case Choice(words, prefixes):
            known = [*words, *(f"{prefix}<…>" for prefix in prefixes)]
            return f"one of {', '.join(known)}" if len(known) > 1 else known[0]
        case ListOf():
            return "a list"
        case LevelOf() | MapOf():
            return "a map"
        case OneOf(options):
            return ", or ".join(dict.fromkeys(takes(option) for option in options))
    return "any value"


def _number(kind: Number) -> str:
    noun = "a whole number" if kind.integer else "a finite number" if kind.finite else "a number"
    if kind.least is not None and kind.most is not None:
        return f"{noun} from {in_full(kind.least)} to {in_full(kind.most)}"
    if kind.least is not None:
        return f"{noun} of {in_full(kind.least)} or more"
    return f"{noun} of at most {in_full(kind.most)}" if kind.most is not None else noun


def in_full(bound: float) -> str:
    """Return a bound without an exponent: 1000000, 0.5, 1/86400."""
    if 0 < bound < 0.0001:
        return f"1/{1 / bound:.0f}"
    return f"{bound:.0f}" if float(bound).is_integer() else f"{bound:g}"


def stands(node: Node) -> str:
    """Describe a node: "a list", "the text 'three'", "the number 3"."""
    if isinstance(node, MapNode):
        return "a map"
    if isinstance(node, ListNode):
        return "a list"
    if not isinstance(node, Scalar) or node.value is None:
        return "nothing"
    if isinstance(node.value, bool):
        return "true" if node.value else "false"
    if isinstance(node.value, int | float):
        return f"the number {shown(node)}"
    return f"the text '{shown(node)}'"


def shown(node: Scalar) -> str:
    """Return the text of a value on one line, cut to fit a message."""
    text = " ".join(node.text.split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def listed(names: Sequence[str]) -> str:
    """Join names in quotes for a sentence: "'a', 'b' and 'c'"."""
    quoted = [f"'{name}'" for name in names]
    return " and ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
