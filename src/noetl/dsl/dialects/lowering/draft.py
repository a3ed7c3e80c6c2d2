"""What lowerings work on: fields of a map, new nodes, the record of changes.

New nodes have the place of what they stand for, so diagnostics keep the positions of the text.
Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from noetl.dsl.diagnostic import Suggestions
from noetl.dsl.dialects.lowering.lowerings import Lowering
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Rewritten, Scalar


class Change(Struct, frozen=True):
    """One place of a document that a lowering rewrote."""

    lowering: Lowering
    at: Node


class Refusal(Struct, frozen=True):
    """An older form without a canonical equivalent."""

    key: Scalar  # of the form, as written
    within: Node  # its value: what is older in it is not reported again
    at: Node
    reason: str
    fix: str


class NoEquivalentError(Exception):
    """An older form cannot be lowered; a name in it may be misspelled."""

    def __init__(self, at: Node, reason: str, fix: str, unknown: str = "", known: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.at, self.reason, self.fix = at, reason, fix
        self.unknown, self.known = unknown, known


class Record:
    """What was lowered and refused in one document, and the names it defines."""

    def __init__(self, root: MapNode, *, first: bool, names: Callable[[], frozenset[str]]) -> None:
        self.root = root
        self.first = first  # written in the first dialect
        self.api = plain_name(root.get("apiVersion")) or ("noetl.io/v1" if first else None)
        self.changes: list[Change] = []
        self.refusals: list[Refusal] = []
        self.added: list[MapNode] = []  # steps
        self._names = names
        self._suggestions = Suggestions()
        self._known: frozenset[str] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names that templates of the document may read."""
        if self._known is None:
            self._known = self._names()
        return self._known

    @property
    def is_canonical(self) -> bool:
        return self.api == "noetl.io/v10"

    def mark(self) -> tuple[int, int]:
        """Return how much was changed so far, for `rollback`."""
        return len(self.changes), len(self.added)

    def rollback(self, mark: tuple[int, int]) -> None:
        """Forget the changes since a mark."""
        del self.changes[mark[0] :]
        del self.added[mark[1] :]

    def refuse(self, entry: Entry, problem: NoEquivalentError) -> None:
        """Record that a form has no equivalent."""
        meant = self._suggestions.did_you_mean(problem.unknown, problem.known) if problem.unknown else ""
        self.refusals.append(Refusal(entry.key, entry.value, problem.at, problem.reason + meant, problem.fix))

    def add_step(self, step: MapNode) -> None:
        self.added.append(step)

    def note(self, lowering: Lowering, at: Node) -> None:
        self.changes.append(Change(lowering, at))


class Fields:
    """The entries of a map under change, in order."""

    def __init__(self, node: MapNode) -> None:
        self.node = node
        self.entries: dict[str, Entry] = {}
        for entry in node.entries:
            self.entries.setdefault(entry.key.text, entry)
        self._original = dict(self.entries)

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def get(self, name: str) -> Node | None:
        entry = self.entries.get(name)
        return None if entry is None else entry.value

    def key(self, name: str) -> Scalar:
        return self.entries[name].key

    def pop(self, name: str) -> Entry:
        return self.entries.pop(name)

    def put(self, name: str, value: Node, at: Node | None = None) -> None:
        """Set a field; a new one comes last, and its key has the place of `at`."""
        known = self.entries.get(name)
        self.entries[name] = Entry(known.key if known else word(name, at or value), value)

    def add(self, entry: Entry, name: str = "") -> None:
        """Set a field to an entry as it is written, with its key."""
        self.entries[name or entry.key.text] = entry

    def reset(self, entries: Mapping[str, Entry]) -> None:
        """Replace all fields."""
        self.entries = dict(entries)

    def rename(self, old: str, new: str) -> None:
        """Rename a field; it keeps its place."""
        self.entries = {
            (new if name == old else name): (Entry(word(new, entry.key), entry.value) if name == old else entry)
            for name, entry in self.entries.items()
        }

    def below(self, name: str, at: Node) -> Fields:
        """Return the fields of the map under a key; without one, of a new map."""
        node = self.get(name)
        return Fields(node if isinstance(node, MapNode) else MapNode(at.start, at.end, ()))

    @property
    def changed(self) -> bool:
        return self.entries != self._original or list(self.entries) != list(self._original)

    def built(self) -> MapNode:
        """Return the map; the original one where nothing changed."""
        if not self.changed:
            return self.node
        return MapNode(self.node.start, self.node.end, tuple(self.entries.values()), self.node.flow)


def word(text: str, at: Node) -> Scalar:
    """Return a key or a text that stands at the place of another node."""
    return Rewritten(at.start, at.end, text, text, "", origin=at)


def value(data: Any, at: Node) -> Node:
    """Return plain data as nodes at the place of another node; nodes inside it stay."""
    if isinstance(data, Node):
        return data
    if isinstance(data, Mapping):
        return MapNode(at.start, at.end, tuple(Entry(word(name, at), value(each, at)) for name, each in data.items()))
    if isinstance(data, list | tuple):
        return ListNode(at.start, at.end, tuple(value(each, at) for each in data))
    if isinstance(data, str):
        return word(data, at)
    text = "null" if data is None else str(data).lower() if isinstance(data, bool) else str(data)
    return Rewritten(at.start, at.end, data, text, "", origin=at)


def rewritten(node: Scalar, edits: Iterable[tuple[int, int, str]]) -> Scalar:
    """Return a text with replaced ranges."""
    text, at, pieces, parts = node.text, 0, [], []
    length = 0
    for start, end, new in sorted(edits):
        parts += [text[at:start], new]
        pieces.append((length, length + start - at, at))
        length += start - at + len(new)
        at = end
    parts.append(text[at:])
    pieces.append((length, length + len(text) - at + 1, at))
    whole = "".join(parts)
    if whole == text:
        return node
    return Rewritten(node.start, node.end, whole, whole, node.style, origin=node, pieces=tuple(pieces))


def each_text(node: Node, change: Callable[[Scalar], Scalar]) -> Node:
    """Return a node with every text in it changed; the same node where nothing was."""
    if isinstance(node, Scalar):
        return change(node) if isinstance(node.value, str) else node
    if isinstance(node, MapNode):
        entries = tuple(Entry(entry.key, each_text(entry.value, change)) for entry in node.entries)
        same = all(new.value is old.value for new, old in zip(entries, node.entries, strict=True))
        return node if same else MapNode(node.start, node.end, entries, node.flow)
    if isinstance(node, ListNode):
        items = tuple(each_text(item, change) for item in node.items)
        same = all(new is old for new, old in zip(items, node.items, strict=True))
        return node if same else ListNode(node.start, node.end, items, node.flow)
    return node


def is_null(node: Node | None) -> bool:
    return node is None or (isinstance(node, Scalar) and node.value is None)


def plain_name(node: Node | None) -> str | None:
    """Return the text of a scalar; None for nothing and anything else."""
    return node.text if isinstance(node, Scalar) and node.value is not None else None


def items_of(node: Node | None) -> Iterator[Node]:
    """Yield the items of a list; another node alone."""
    if isinstance(node, ListNode):
        yield from node.items
    elif not is_null(node) and node is not None:
        yield node


def maps_of(node: Node | None) -> Iterator[MapNode]:
    """Yield the maps of a list, or a map alone."""
    for item in items_of(node):
        if isinstance(item, MapNode):
            yield item


def is_result_form(node: Node | None) -> bool:
    """Return whether a `result` says what a step does with its result."""
    return isinstance(node, MapNode) and bool(node.entries) and set(node.keys) <= {"as", "collect", "sink"}
