"""Build the concrete syntax tree of a text, with comments.

The text must have no read problems. Rare spellings raise `UnsupportedError`. Tested in tests/unit/dsl/formatter/test_format.py.
"""

from __future__ import annotations

import re
from typing import Final

from noetl.dsl.formatter.cst import Collection, Comment, Entry, Leaf, Piece
from noetl.dsl.formatter.scan import Scan, UnsupportedError, leaf_of
from noetl.dsl.formatter.tokens import Token

_DASH: Final = re.compile(r"(?:[ \n\t]+|#[^\n]*)*-")
_COMMA: Final = re.compile(r"[ \t]*,?[ \t]*")


class Dissection:
    """The concrete syntax tree of a scanned text; `root` is the root map."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.text = scan.text
        self._done = len(scan.prologue)  # end of the last token
        self._content_end = 0  # end of the last block scalar's content
        self._at = 0
        self._waiting = scan.comments[::-1]
        root = self._next()
        if root.kind != "map" or root.flow or root.properties:
            raise UnsupportedError
        self.root = self._block(root, parent_column=-1)

    def _next(self) -> Token:
        self._at += 1
        return self.scan.tokens[self._at - 1]

    def _peek(self) -> Token:
        return self.scan.tokens[self._at]

    def _column(self, offset: int) -> int:
        return offset - self.scan.line_start(offset)

    def _after_empty_line(self, offset: int) -> bool:
        return self.scan.after_empty_line(offset, self._content_end)

    def _take_before(self, offset: int) -> list[Comment]:
        taken = []
        while self._waiting and self._waiting[-1].start < offset:
            taken.append(self._waiting.pop())
        return taken

    def _take_beside(self, offset: int, before: int | None = None) -> Comment | None:
        if not self._waiting or (before is not None and self._waiting[-1].start >= before):
            return None
        start = self._waiting[-1].start
        return self._waiting.pop() if start >= offset and self.text.find("\n", offset, start) < 0 else None

    def _take_tail(self, end: int, column: int) -> list[Comment]:
        taken = []
        while self._waiting and self._waiting[-1].start < end and self._waiting[-1].column >= column:
            taken.append(self._waiting.pop())
        return taken

    def _block(self, opening: Token, parent_column: int) -> Collection:
        is_map = opening.kind == "map"
        block = Collection(is_map, flow=False, entries=[], properties=opening.properties)
        column = self._column(self._first_of(opening))
        if not is_map:
            self._done = opening.content
        while self._peek().kind != "end":
            block.entries.append(self._pair(column) if is_map else self._item(column))
        end = self._next()
        # In a list that is not indented below its key, a comment in the same column belongs to the next key.
        block.tail = self._take_tail(end.start, column + (column == parent_column and not is_map))
        return block

    def _pair(self, column: int) -> Entry:
        token = self._next()
        leading = self._take_before(token.start)
        key = self._key(token)
        entry = Entry(key, key, leading, after_empty_line=self._after_empty_line(token.start))
        self._read_value(entry, key.end, column)
        return entry

    def _item(self, column: int) -> Entry:
        dash = _DASH.match(self.text, self._done)
        if dash is None:
            raise UnsupportedError
        place = dash.end() - 1
        self._done = dash.end()
        empty = Leaf(place, place, "", "", "")
        entry = Entry(None, empty, self._take_before(place), after_empty_line=self._after_empty_line(place))
        self._read_value(entry, dash.end(), column)
        return entry

    def _read_value(self, entry: Entry, head_end: int, column: int) -> None:
        token = self._next()
        is_block = token.kind in ("map", "list") and not token.flow
        if is_block:
            entry.beside = self._take_beside(head_end, self._first_of(token))
            entry.value = self._block(token, column)
            return
        is_missing = token.kind == "scalar" and token.content == token.end
        if not is_missing:
            entry.beside = self._take_beside(head_end, token.content)
            entry.inner = self._take_before(token.content)
        entry.value = self._flow(token) if token.kind in ("map", "list") else self._leaf(token)
        if not (isinstance(entry.value, Leaf) and entry.value.style in ("|", ">")):
            entry.after = self._take_beside(self._done)

    def _first_of(self, token: Token) -> int:
        return self._peek().start if token.kind == "map" else token.content

    def _leaf(self, token: Token) -> Leaf:
        if token.kind not in ("scalar", "alias"):
            raise UnsupportedError
        self._done = max(self._done, token.end)
        self._content_end = self.scan.content_ends.get(token.content, self._content_end)
        return leaf_of(token)

    def _key(self, token: Token) -> Leaf:
        key = self._leaf(token)
        if "\n" in self.text[token.start : key.end]:
            raise UnsupportedError
        return key

    def _flow(self, opening: Token) -> Collection:
        is_map = opening.kind == "map"
        bare = is_map and not self.text.startswith("{", opening.content)
        flow = Collection(is_map, True, [], opening.properties, start=opening.content, bare=bare)
        if not bare:
            self._done = opening.content + 1
            flow.opening = self._take_beside(self._done, self._peek().start)
        while self._peek().kind != "end":
            flow.entries.append(self._flow_entry(is_map))
        end = self._next()
        flow.tail = self._take_before(end.start)
        self._done = flow.end = max(self._done, end.end)
        return flow

    def _flow_entry(self, is_map: bool) -> Entry:
        leading = self._take_before(self._peek().content)
        key = self._key(self._next()) if is_map else None
        token = self._next()
        if key is not None and self._take_before(token.content):
            raise UnsupportedError
        value: Piece = self._flow(token) if token.kind in ("map", "list") else self._leaf(token)
        entry = Entry(key, value, leading)
        comma = _COMMA.match(self.text, self._done)
        behind = comma.end() if comma else self._done
        entry.after = self._take_beside(behind, behind + 1)
        return entry
