"""Write flow collections. Tested in tests/unit/dsl/formatter/test_format.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from noetl.dsl.formatter.cst import Collection, Comment, Entry, Leaf, Piece
from noetl.dsl.formatter.scalar_text import leaf_lines

WIDTH: Final = 100


class Row(Struct):
    """A line of a value; `column` is relative to the indentation of the value."""

    column: int
    text: str
    comment: Comment | None = None


def value_rows(text: str, value: Piece, column: int) -> list[Row]:
    """Return the lines of a value whose first line begins at `column`."""
    if isinstance(value, Leaf):
        return [Row(0, line) for line in _leaf(text, value)]
    line = one_line(text, value)
    was_one_line = "\n" not in text[value.start : value.end]
    if line is not None and (was_one_line or column + len(line) <= WIDTH):
        return [Row(0, line)]
    return list(_flow(text, value, "", 0))


def one_line(text: str, value: Piece) -> str | None:
    """Return a value on one line; None with a comment or multi-line scalar in it."""
    if isinstance(value, Leaf):
        lines = _leaf(text, value)
        return lines[0] if len(lines) == 1 else None
    if value.has_comments():
        return None
    entries = []
    for entry in value.entries:
        written = one_line(text, entry.value)
        if written is None:
            return None
        entries.append(_key(text, entry, written) + written)
    opening, closing = _brackets(value)
    inside = ", ".join(entries)
    if inside and value.is_map and not value.bare:
        inside = f" {inside} "
    properties = f"{value.properties} " if value.properties else ""
    return f"{properties}{opening}{inside}{closing}"


def _leaf(text: str, leaf: Leaf) -> list[str]:
    first, *rest = leaf_lines(text, leaf)
    if leaf.properties:
        first = f"{leaf.properties} {first}".rstrip()
    return [first, *rest]


def _brackets(flow: Collection) -> tuple[str, str]:
    if flow.bare:
        return "", ""
    return ("{", "}") if flow.is_map else ("[", "]")


def _key(text: str, entry: Entry, value: str) -> str:
    """Return a key of a flow map with its separator; a missing value needs none."""
    if entry.key is None:
        return ""
    [key] = _leaf(text, entry.key)
    if entry.key.style == "*":
        key += " "
    return f"{key}: " if value else key


def _flow(text: str, flow: Collection, head: str, column: int) -> Iterator[Row]:
    opening, closing = _brackets(flow)
    properties = f"{flow.properties} " if flow.properties else ""
    yield Row(column, head + properties + opening, flow.opening)
    for number, entry in enumerate(flow.entries):
        for comment in entry.leading:
            yield Row(column + 2, comment.text)
        rows = list(_flow_entry(text, entry, column + 2))
        if number + 1 < len(flow.entries):
            rows[-1].text += ","
        rows[-1].comment = entry.after
        yield from rows
    for comment in flow.tail:
        yield Row(column + 2, comment.text)
    yield Row(column, closing)


def _flow_entry(text: str, entry: Entry, column: int) -> Iterator[Row]:
    value = entry.value
    line = one_line(text, value)
    if line is not None:
        yield Row(column, _key(text, entry, line) + line)
    elif isinstance(value, Leaf):
        first, *rest = _leaf(text, value)
        yield Row(column, _key(text, entry, first) + first)
        yield from (Row(column + 2, each) for each in rest)
    elif value.bare:
        [pair] = value.entries
        yield from _flow_entry(text, pair, column)
    else:
        yield from _flow(text, value, _key(text, entry, "-"), column)
