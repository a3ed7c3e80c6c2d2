"""Concrete syntax tree of a document, with comments, styles and anchors.

The tree refers to the source text by offsets; only the order of a collection's entries may change.
Tested in tests/unit/dsl/formatter/test_format.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Comment(Struct):
    """A comment, from its `#` to the end of its line."""

    start: int
    text: str
    column: int
    gap: str  # white space before it
    after_empty_line: bool


class Leaf(Struct):
    """A scalar or an alias."""

    start: int
    end: int
    style: str  # of the scalar, or "*" for an alias
    properties: str  # anchor and tag, as written
    value: str


class Entry(Struct):
    """A key with its value, or a list item, with the comments around it."""

    key: Leaf | None
    value: Piece
    leading: list[Comment] = []  # on the lines above
    beside: Comment | None = None  # after the key or dash, where the value begins further down
    inner: list[Comment] = []  # between the key or dash and a value below
    after: Comment | None = None  # after the value
    after_empty_line: bool = False  # the line directly above is empty

    @property
    def name(self) -> str:
        return self.key.value if self.key else ""

    @property
    def opens_after_empty_line(self) -> bool:
        return self.leading[0].after_empty_line if self.leading else self.after_empty_line


class Collection(Struct):
    """A map or a list, in block or in flow form."""

    is_map: bool
    flow: bool
    entries: list[Entry]
    properties: str = ""
    opening: Comment | None = None  # after the opening bracket of a flow collection
    tail: list[Comment] = []  # below the last entry
    start: int = 0  # of a flow collection, with its brackets
    end: int = 0
    bare: bool = False  # a single pair in a flow list, without braces

    def get(self, name: str) -> Piece | None:
        return next((entry.value for entry in self.entries if entry.name == name), None) if self.is_map else None

    def has_comments(self) -> bool:
        """Return whether the collection contains a comment."""
        if self.opening or self.tail:
            return True
        return any(
            entry.leading
            or entry.inner
            or entry.beside
            or entry.after
            or (isinstance(entry.value, Collection) and entry.value.has_comments())
            for entry in self.entries
        )


Piece = Leaf | Collection


def collections(piece: Piece | None) -> Iterator[Collection]:
    """Yield the collections that are items of a list."""
    if isinstance(piece, Collection) and not piece.is_map:
        for entry in piece.entries:
            if isinstance(entry.value, Collection):
                yield entry.value
