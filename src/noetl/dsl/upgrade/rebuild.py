"""Rebuild the concrete syntax tree of a document from its lowered nodes.

A part that was not lowered keeps its text and its comments. Comments of a part that is gone move to the step that it was
in. Tested in tests/unit/dsl/upgrade/test_upgrade.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from noetl.dsl.formatter.cst import Collection, Comment, Entry, Leaf, Piece
from noetl.dsl.reading.nodes import Entry as Pair
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Rewritten, Scalar
from noetl.dsl.upgrade.leaves import Leaves

_WIDEST_FLOW: Final = 72
_OF_A_FLOW: Final = frozenset("{}[],")  # a text without quotes that has one of them ends there on one line


class Rebuilder:
    """Makes the tree of the lowered document from the one of the written document."""

    def __init__(self, written: MapNode, tree: Collection, leaves: Leaves) -> None:
        self._leaves = leaves
        self._values: dict[int, Piece] = {}  # by id of the node
        self._aliases: dict[int, int] = {}  # by id of the leaf: id of the node
        self._pairs: dict[int, Entry] = {}  # by id of the key
        self._moved: dict[int, int] = {}  # id of a value, which may have moved to another key → id of its key
        self._items: dict[tuple[int, type], Entry] = {}  # by start and type of the item
        self._blocks: dict[tuple[int, type], Collection] = {}
        self._steps: list[tuple[int, Entry]] = []
        self._keep = written  # ids stay valid
        self._tree = tree
        self._index(written, tree)

    def _index(self, node: Node, piece: Piece) -> None:
        if isinstance(piece, Leaf):
            if piece.style == "*":
                self._aliases[id(piece)] = id(node)
            else:
                self._values.setdefault(id(node), piece)
            return
        self._values.setdefault(id(node), piece)
        self._blocks.setdefault((node.start, type(node)), piece)
        if isinstance(node, MapNode) and piece.is_map:
            for entry in piece.entries:
                pair = node.entry(entry.name) if entry.key is not None and entry.key.style != "*" else None
                if pair is not None and entry.name != "<<":
                    self._pairs.setdefault(id(pair.key), entry)
                    self._moved.setdefault(id(pair.value), id(pair.key))
                    self._index(pair.value, entry.value)
        elif isinstance(node, ListNode) and not piece.is_map:
            for item, entry in zip(node.items, piece.entries, strict=False):
                self._items.setdefault((item.start, type(item)), entry)
                self._index(item, entry.value)

    def root(self, lowered: MapNode) -> Collection:
        """Return the tree of a lowered root, with every comment."""
        made = self._piece(lowered, None)
        assert isinstance(made, Collection)
        self._keep_comments(made)
        return made

    def _piece(self, node: Node, written: Piece | None) -> Piece:
        """Return the tree of a node; `written` is what stands there now."""
        if written is not None and self._aliases.get(id(written)) == id(node):
            return written  # it still stands for the same
        known = self._values.get(id(node))
        if known is not None:
            return known
        if isinstance(node, Scalar):
            return self._leaves.of(node)
        block = self._blocks.get((node.start, type(node)))
        own = written if isinstance(written, Collection) else block
        if isinstance(node, MapNode):
            entries = [self._pair(pair) for pair in node.entries]
            made = Collection(True, self._may_flow(own, entries), entries)
        else:
            assert isinstance(node, ListNode)
            entries = [self._item(item) for item in node.items]
            made = Collection(False, self._may_flow(own, entries), entries)
        if own is not None and own.is_map == made.is_map:
            made.properties = own.properties if own is written else ""
            made.tail = list(own.tail)
            own.tail = []
        return made

    def _pair(self, pair: Pair) -> Entry:
        entry = self._pairs.pop(id(pair.key), None)
        renamed = False
        if entry is None and isinstance(pair.key, Rewritten) and pair.key.origin is not None:
            entry = self._pairs.pop(id(pair.key.origin), None)
            renamed = entry is not None
        if entry is None and isinstance(pair.value, Scalar):
            entry, renamed = self._moved_with(pair.value), True
        if entry is None:
            return Entry(self._leaves.text_of(pair.key.text), self._piece(pair.value, None))
        self._moved.pop(id(pair.value), None)
        key = self._leaves.text_of(pair.key.text) if renamed else entry.key
        value = self._piece(pair.value, entry.value)
        made = Entry(
            key, value, list(entry.leading), entry.beside, list(entry.inner), entry.after, entry.after_empty_line
        )
        if isinstance(value, Collection) and not value.flow and entry.after is not None:
            made.leading, made.after = [*made.leading, _own_line(entry.after)], None
        if isinstance(value, Leaf) and value.style in ("|", ">"):
            loose = [one for one in (entry.beside, *entry.inner, entry.after) if one is not None]
            made.leading, made.beside, made.inner, made.after = [*made.leading, *map(_own_line, loose)], None, [], None
        if isinstance(value, Collection) and not value.flow and made.inner:
            made.leading, made.inner = [*made.leading, *map(_own_line, made.inner)], []
        return made

    def _moved_with(self, value: Node | None) -> Entry | None:
        """Return the entry that held a value under another key, if any."""
        while value is not None:
            key = self._moved.pop(id(value), None)
            if key is not None:
                return self._pairs.pop(key, None)
            value = value.origin if isinstance(value, Rewritten) else None
        return None

    def _item(self, item: Node) -> Entry:
        entry = self._items.pop((item.start, type(item)), None)
        value = self._piece(item, entry.value if entry is not None else None)
        if entry is None:
            return Entry(None, value)
        block = isinstance(value, Collection) and not value.flow
        loose = [one for one in (entry.after, *entry.inner) if one is not None] if block else []
        leading = [*entry.leading, *map(_own_line, loose)]
        inner, after = ([], None) if block else (list(entry.inner), entry.after)
        return Entry(None, value, leading, entry.beside, inner, after, entry.after_empty_line)

    def _may_flow(self, written: Collection | None, entries: list[Entry]) -> bool:
        """Return whether a changed collection is written on one line."""
        if written is not None and not written.flow:
            return False
        total = 4
        for entry in entries:
            value = entry.value
            if entry.leading or entry.beside or entry.inner or entry.after:
                return False
            if isinstance(value, Collection):
                if not value.flow or value.entries:
                    return False
            elif value.style in ("|", ">") or (not value.style and not _OF_A_FLOW.isdisjoint(value.value)):
                return False
            total += len(entry.name) + 4 + (len(value.value) if isinstance(value, Leaf) else 2)
        return total <= _WIDEST_FLOW or not entries

    def _keep_comments(self, root: Collection) -> None:
        """Put the comments of what is gone before the step that they were in."""
        kept = {id(comment) for comment in _comments(root)}
        kept_starts = {comment.start for comment in _comments(root)}
        lost = [one for one in _comments(self._tree) if id(one) not in kept and one.start not in kept_starts]
        places = sorted(_places(root), key=lambda place: place[0])
        for comment in lost:
            before = [entry for start, entry in places if start <= comment.start]
            home = before[-1] if before else places[0][1]
            home.leading = [*home.leading, _own_line(comment)]


def _own_line(comment: Comment) -> Comment:
    return Comment(comment.start, comment.text, comment.column, "", False)


def _comments(piece: Piece) -> Iterator[Comment]:
    if isinstance(piece, Leaf):
        return
    for entry in piece.entries:
        yield from entry.leading
        yield from filter(None, (entry.beside, *entry.inner, entry.after))
        yield from _comments(entry.value)
    yield from filter(None, (piece.opening, *piece.tail))


def _places(root: Collection) -> Iterator[tuple[int, Entry]]:
    """Yield the entries of the root and the steps, with their old offsets."""
    for entry in root.entries:
        if entry.key is not None:
            yield entry.key.start, entry
        if entry.name == "workflow" and isinstance(entry.value, Collection) and not entry.value.flow:
            for item in entry.value.entries:
                start = _first(item.value)
                if start is not None:
                    yield start, item


def _first(piece: Piece) -> int | None:
    if isinstance(piece, Leaf):
        return piece.start
    starts = [entry.key.start for entry in piece.entries if entry.key is not None]
    return min(starts, default=None)
