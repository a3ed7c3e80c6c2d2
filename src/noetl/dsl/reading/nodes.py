"""Nodes of a parsed document: plain values with their position in the source.

A node stores character offsets; `Source` converts an offset to line and column. Tested in tests/unit/dsl/reading/test_parse.py.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, KeysView
from typing import Any, NamedTuple

from msgspec import Struct

_NEWLINE = re.compile("\n")


class Position(NamedTuple):
    """A position in a source text; both numbers count from 1."""

    line: int
    column: int


class Node(Struct, frozen=True, eq=False):
    """Base of all nodes: the half-open range of characters that it covers."""

    start: int
    end: int


class Scalar(Node, frozen=True, eq=False):
    """One value: `text` is the unquoted content, `value` its YAML 1.2 meaning."""

    value: Any
    text: str
    style: str = ""  # "" plain, "'" or '"' quoted, "|" literal, ">" folded

    @property
    def is_string(self) -> bool:
        return isinstance(self.value, str)


class Rewritten(Scalar, frozen=True, eq=False):
    """A value that stands for another spelling of it in the source.

    `pieces` are the parts of its text that are in the text of `origin` too: start, end, and start there.
    """

    origin: Node | None = None
    pieces: tuple[tuple[int, int, int], ...] = ()

    def original(self, offset: int) -> int:
        """Return the offset in the text of `origin` of an offset in this text."""
        before = 0
        for start, end, there in self.pieces:
            if offset < start:
                break
            if offset < end:
                return there + offset - start
            before = there + end - start
        return before


class Entry(NamedTuple):
    """One key of a map with its value."""

    key: Scalar
    value: Node


class MapNode(Node, frozen=True, eq=False):
    """A map in source order; merged keys (`<<`) are folded in after the explicit ones."""

    entries: tuple[Entry, ...]
    flow: bool = False
    _index: dict[str, Entry] = {}

    def __post_init__(self) -> None:
        if not self._index:
            self._index.update((entry.key.text, entry) for entry in reversed(self.entries))

    def get(self, name: str) -> Node | None:
        entry = self._index.get(name)
        return entry.value if entry else None

    def entry(self, name: str) -> Entry | None:
        return self._index.get(name)

    @property
    def keys(self) -> KeysView[str]:
        return self._index.keys()

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)


class ListNode(Node, frozen=True, eq=False):
    """A list in source order."""

    items: tuple[Node, ...]
    flow: bool = False

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


class Source:
    """A text with its file name; converts between offsets and positions."""

    __slots__ = ("_starts", "file", "text")

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._starts: list[int] | None = None

    def _line_starts(self) -> list[int]:
        if self._starts is None:
            self._starts = [0, *(newline.end() for newline in _NEWLINE.finditer(self.text))]
        return self._starts

    def position(self, offset: int) -> Position:
        starts = self._line_starts()
        line = bisect_right(starts, offset)
        return Position(line, offset - starts[line - 1] + 1)

    def offset(self, position: Position) -> int:
        starts = self._line_starts()
        line = min(max(position.line, 1), len(starts))
        return min(starts[line - 1] + position.column - 1, len(self.text))

    def line(self, number: int) -> str:
        starts = self._line_starts()
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r")


def plain(node: Node | None) -> Any:
    """Return the plain data of a node; map keys become their text."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, MapNode):
        return {entry.key.text: plain(entry.value) for entry in node.entries}
    if isinstance(node, ListNode):
        return [plain(item) for item in node.items]
    return None


def key_at(node: Node | None, *path: str) -> Scalar | None:
    """Return the last key of a path of keys, or None where the path does not exist."""
    key: Scalar | None = None
    for name in path:
        entry = node.entry(name) if isinstance(node, MapNode) else None
        if entry is None:
            return None
        key, node = entry.key, entry.value
    return key
