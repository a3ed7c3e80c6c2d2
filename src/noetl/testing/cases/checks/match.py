"""Compare expected nodes with values; every difference has its position.

Maps are compared by the expected keys only, lists completely; a template is a condition on `value`; anything else must be
equal. Tested in tests/unit/testing/test_cases.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from noetl.dsl.checking.shape import is_template
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, plain
from noetl.testing.cases.files.templates import TemplateTroubleError, holds

NOTHING = object()


class Difference(Struct, frozen=True):
    """One difference, with its position."""

    node: Node
    path: str
    expected: str
    found: str
    note: str = ""


def matched(node: Node, found: Any, path: str, names: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield every difference between a node and a value."""
    if is_template(node) and isinstance(node, Scalar):
        yield from _condition(node, found, path, names)
    elif found is NOTHING:
        yield Difference(node, path, shown(plain(node)), "nothing")
    elif isinstance(node, MapNode):
        if not isinstance(found, Mapping):
            yield Difference(node, path, "a map", shown(found))
            return
        for entry in node.entries:
            yield from matched(entry.value, found.get(entry.key.text, NOTHING), f"{path}.{entry.key.text}", names)
    elif isinstance(node, ListNode):
        if not isinstance(found, list | tuple):
            yield Difference(node, path, "a list", shown(found))
            return
        yield from _listed(node, found, path, names)
    elif not same(plain(node), found):
        yield Difference(node, path, shown(plain(node)), shown(found))


def _listed(node: ListNode, found: Sequence[Any], path: str, names: Mapping[str, Any]) -> Iterator[Difference]:
    for index, (item, value) in enumerate(zip(node.items, found, strict=False)):
        yield from matched(item, value, f"{path}[{index}]", names)
    if len(node.items) != len(found):
        note = f"found: {shown(list(found))}"
        yield Difference(node, path, f"{len(node.items)} items", f"{len(found)} items", note)


def _condition(node: Scalar, found: Any, path: str, names: Mapping[str, Any]) -> Iterator[Difference]:
    value = None if found is NOTHING else found
    try:
        if holds(node.text, {**names, "value": value}):
            return
        note = ""
    except TemplateTroubleError as problem:
        note = str(problem)
    yield Difference(node, path, node.text, "nothing" if found is NOTHING else shown(found), note)


def same(expected: Any, found: Any) -> bool:
    """Whether two plain values are equal; true is not 1."""
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def shown(value: Any) -> str:
    """Format a value as JSON on one line, truncated."""
    import msgspec

    try:
        text = msgspec.json.encode(value).decode()
    except TypeError:
        text = repr(value)
    return text if len(text) <= 300 else text[:299] + "…"
