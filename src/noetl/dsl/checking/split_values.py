"""Find values that a comma splits inside `{ }`: `{ message: hello, world }`.

YAML reads the rest of such a value as a key without a value. Tested in tests/unit/dsl/rules/test_reading.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar, Source

_AFTER = re.compile(r"\s*[,}]")


class SplitValue(Struct, frozen=True):
    """Words that were read as keys, and the entry whose value they continue."""

    words: tuple[Scalar, ...]
    before: Entry | None  # None where no plain value precedes them

    @property
    def whole(self) -> str:
        """The value as its author meant it."""
        first = [self.before.value.text] if self.before and isinstance(self.before.value, Scalar) else []
        return ", ".join([*first, *(word.text for word in self.words)])


def split_values(root: Node | None, source: Source) -> tuple[SplitValue, ...]:
    """Return every run of words without a colon in the flow maps of a document."""
    return tuple(_below(root, source, set()))


def _below(node: Node | None, source: Source, seen: set[int]) -> Iterator[SplitValue]:
    if node is None or id(node) in seen:
        return
    if isinstance(node, MapNode):
        seen.add(id(node))
        if node.flow:
            yield from _in_map(node, source)
        for entry in node:
            yield from _below(entry.value, source, seen)
    elif isinstance(node, ListNode):
        seen.add(id(node))
        for item in node:
            yield from _below(item, source, seen)


def _in_map(node: MapNode, source: Source) -> Iterator[SplitValue]:
    words: list[Scalar] = []
    before: Entry | None = None
    for entry in node:
        if _is_word(entry, source):
            words.append(entry.key)
            continue
        if words:
            yield SplitValue(tuple(words), before)
            words = []
        is_plain = isinstance(entry.value, Scalar) and not entry.value.style and entry.value.value is not None
        before = entry if is_plain else None
    if words:
        yield SplitValue(tuple(words), before)


def _is_word(entry: Entry, source: Source) -> bool:
    """Return whether a key has no colon: a comma or the end of the map follows it."""
    if not isinstance(entry.value, Scalar) or entry.value.value is not None or entry.value.text:
        return False
    return _AFTER.match(source.text, entry.key.end) is not None
