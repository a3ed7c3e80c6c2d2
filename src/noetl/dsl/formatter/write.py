"""Write a concrete syntax tree in the layout of a formatted playbook.

Two spaces per level, list items indented below their key; `{ a: b }` and `[a, b]` in flow form, on one line where they
fit, otherwise one entry per line; at most one empty line in a row. Tested in tests/unit/dsl/formatter/test_format.py.
"""

from __future__ import annotations

from typing import Final

from noetl.dsl.formatter.cst import Collection, Comment, Entry, Leaf, Piece
from noetl.dsl.formatter.flow_rows import value_rows
from noetl.dsl.formatter.scalar_text import block_text, leaf_lines
from noetl.dsl.formatter.scan import UnsupportedError

HEADER: Final = frozenset({"apiVersion", "kind", "metadata"})  # may follow each other without empty lines


class Writer:
    """A collector of lines; `text` is the source that the tree refers to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self._dashes = ""  # dashes and indentation of the next line
        self._keeps_newlines = False  # an empty line would become part of the last value

    def finish(self) -> str:
        if not self._keeps_newlines:
            while self.lines and not self.lines[-1]:
                self.lines.pop()
        return "\n".join(self.lines) + "\n"

    def verbatim(self, text: str) -> None:
        """Write the text around the document."""
        for line in text.split("\n") if text else ():
            if line.strip():
                self._line(0, line.rstrip())
            else:
                self._empty_line()

    def root(self, root: Collection) -> None:
        for number, entry in enumerate(root.entries):
            previous = root.entries[number - 1] if number else None
            apart = (
                previous is not None and not {entry.name, previous.name} <= HEADER and self._is_tall(0, previous, entry)
            )
            is_workflow = entry.name == "workflow" and isinstance(entry.value, Collection) and not entry.value.flow
            self._separate(entry, 0, first=previous is None, apart=apart)
            self._entry(entry, 0, steps=is_workflow)
        self._comments(root.tail, 0)

    def _is_tall(self, indent: int, *entries: Entry) -> bool:
        for entry in entries:
            value = entry.value
            if isinstance(value, Leaf):
                tall = "\n" in self.text[value.start : value.end].rstrip()
            else:
                tall = not value.flow or len(value_rows(self.text, value, indent + len(self._head(entry)) + 1)) > 1
            if tall:
                return True
        return False

    def _line(self, indent: int, text: str, comment: Comment | None = None) -> None:
        behind = (comment.gap or " ") + comment.text if comment else ""
        self.lines.append((self._dashes or " " * indent) + text + behind)
        self._dashes, self._keeps_newlines = "", False

    def _empty_line(self) -> None:
        if self.lines and self.lines[-1] and not self._keeps_newlines and not self._dashes:
            self.lines.append("")

    def _comments(self, comments: list[Comment], indent: int) -> None:
        for comment in comments:
            if comment.after_empty_line:
                self._empty_line()
            self._line(indent, comment.text)

    def _separate(self, entry: Entry, indent: int, *, first: bool, apart: bool) -> None:
        if not first and (apart or entry.opens_after_empty_line):
            self._empty_line()
        if entry.leading:
            self._line(indent, entry.leading[0].text)
            self._comments(entry.leading[1:], indent)
            if entry.after_empty_line:
                self._empty_line()

    def _block(self, block: Collection, indent: int, *, steps: bool = False) -> None:
        for number, entry in enumerate(block.entries):
            apart = steps and number > 0 and self._is_tall(indent, block.entries[number - 1], entry)
            self._separate(entry, indent, first=number == 0, apart=apart)
            self._entry(entry, indent)
        self._comments(block.tail, indent)

    def _entry(self, entry: Entry, indent: int, *, steps: bool = False) -> None:
        value = entry.value
        if isinstance(value, Collection) and not value.flow:
            self._entry_with_block(entry, value, indent, steps=steps)
        elif isinstance(value, Leaf) and value.style in ("|", ">"):
            self._entry_with_text(entry, value, indent)
        else:
            self._entry_with_value(entry, value, indent)

    def _head(self, entry: Entry) -> str:
        if entry.key is None:
            return "-"
        return self._joined(entry.key.properties, *leaf_lines(self.text, entry.key)) + (
            " :" if entry.key.style == "*" else ":"
        )

    def _joined(self, *words: str) -> str:
        return " ".join(word for word in words if word)

    def _entry_with_block(self, entry: Entry, block: Collection, indent: int, *, steps: bool) -> None:
        is_compact = entry.key is None and not block.properties and not entry.beside and not block.entries[0].leading
        if is_compact:
            self._dashes = (self._dashes or " " * indent) + "- "
        else:
            self._line(indent, self._joined(self._head(entry), block.properties), entry.beside)
        self._block(block, indent + 2, steps=steps)

    def _entry_with_text(self, entry: Entry, leaf: Leaf, indent: int) -> None:
        if entry.beside or entry.inner:
            raise UnsupportedError
        block = block_text(self.text, leaf)
        self._line(indent, self._joined(self._head(entry), leaf.properties, block.header) + block.comment)
        self.lines.extend(" " * (indent + 2) + line if line else "" for line in block.lines)
        self._keeps_newlines = block.keeps_newlines

    def _entry_with_value(self, entry: Entry, value: Piece, indent: int) -> None:
        head = self._head(entry)
        rows = value_rows(self.text, value, indent + len(head) + 1)
        is_long = len(rows) > 1
        if entry.inner or (entry.beside and (entry.after or is_long)) or (is_long and self._stays_below(entry, value)):
            self._line(indent, head, entry.beside)
            self._comments(entry.inner, indent + 2)
            rows[-1].comment = entry.after
        else:
            rows[0].text = self._joined(head, rows[0].text)
            rows[0].column -= 2
            rows[-1].comment = entry.after or entry.beside
        for row in rows:
            if row.text:
                self._line(indent + 2 + row.column, row.text, row.comment)
            else:
                self.lines.append("")

    def _stays_below(self, entry: Entry, value: Piece) -> bool:
        if isinstance(value, Collection):
            return entry.key is not None  # its closing bracket must be indented deeper than the key
        line_start = self.text.rfind("\n", 0, value.start) + 1
        return not self.text[line_start : value.start].removesuffix(value.properties + " ").strip()
