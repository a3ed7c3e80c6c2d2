"""Drop unknown keys from a document, for `--tolerant`.

An unknown key may stand for one that is required, so what is left is checked again. Tested in
tests/unit/dsl/checking/test_tolerate.py.
"""

from __future__ import annotations

from msgspec.structs import replace

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.reading.nodes import ListNode, MapNode, Node

_DROPPED = frozenset({"unknown-key", "misplaced"})


def without_unknown_keys(subject: CheckContext) -> CheckContext:
    """Return the document under check without unknown and misplaced keys."""
    dropped = {
        (id(finding.owner), name)
        for finding in subject.every_finding
        if finding.kind in _DROPPED
        for name in (finding.name, *finding.others)
    }
    if not dropped:
        return subject
    document = replace(subject.document, root=_without(subject.document.root, dropped))
    return CheckContext(document, subject.kinds, subject.catalog, subject.unavailable)


def _without(node: Node | None, dropped: set[tuple[int, str]]) -> Node | None:
    if isinstance(node, ListNode):
        items = tuple(_without(item, dropped) or item for item in node.items)
        return node if all(map(_is, items, node.items)) else replace(node, items=items)
    if not isinstance(node, MapNode):
        return node
    kept = tuple(entry for entry in node.entries if (id(node), entry.key.text) not in dropped)
    entries = tuple(entry._replace(value=_without(entry.value, dropped) or entry.value) for entry in kept)
    is_same = len(kept) == len(node.entries) and all(
        new.value is old.value for new, old in zip(entries, kept, strict=True)
    )
    return node if is_same else MapNode(node.start, node.end, entries, node.flow)


def _is(one: Node, other: Node) -> bool:
    return one is other
