"""Reads a text that is not YAML yet into nodes, by its indentation alone; never fails.

While a playbook is being typed it mostly cannot be parsed: a key has no colon, a quote or a brace is still open. What is
read here has the same nodes as a parsed document, so that names and places are known all the same. It guesses: whatever
is told to a person as wrong comes from `noetl.dsl.parse`. Tested in tests/unit/lsp/test_salvage.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from noetl.dsl.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.scalars import resolve
from noetl.lsp.salvage_flow import flow, is_flow, quoted

_DIRECTIVE: Final = re.compile(r"---$|\.\.\.$|%[A-Z]")
_BREAK: Final = re.compile("\r\n|\n|\r")
# The bounds keep a long line without a colon from being searched again and again.
_KEY: Final = re.compile(
    r"(?P<key>\"(?:[^\"\\]|\\.){0,200}\"|'(?:[^']|''){0,200}'|[^\s\"'{}\[\],#&*!|>%@`-][^#]{0,200}?|-[^\s#:][^#:]{0,200}?)"
    r"[ \t]{0,200}:(?=[ \t]|$)"
)
_BLOCK: Final = re.compile(r"(?:[&!]\S*[ \t]+)*(?P<style>[|>])[-+0-9]*(?:[ \t]+#.*)?$")
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s,\[\]{}]*(?:[ \t]+|$))*")
_DASH: Final = re.compile(r"-(?:[ \t]+|$)")
_BLANKS: Final = re.compile("[ \t]*")
_DEEPEST: Final = 60


class Line(NamedTuple):
    """The content of a line, or what is left of it behind a dash: its column and its range in the text."""

    indent: int
    start: int
    end: int


def salvage(text: str) -> Node | None:
    """Give the nodes of a text as its indentation suggests them; None for a text without content."""
    return _Reader(text).root()


class _Reader:
    """Goes down the lines once; `at` is the line to look at next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [line for line in _lines(text) if not _DIRECTIVE.match(text, line.start, line.end)]
        self.at = 0

    def root(self) -> Node | None:
        if self.at == len(self.lines):
            return None
        first = self.lines[self.at]
        if is_flow(self.text, first.start):
            return flow(self.text, first.start, len(self.text))
        return self.block(first, 0)

    def content(self, line: Line) -> str:
        return self.text[line.start : line.end]

    def peek(self) -> Line | None:
        return self.lines[self.at] if self.at < len(self.lines) else None

    def block(self, line: Line, depth: int) -> Node:
        """Read what begins at a line, which is the next one or the rest of it."""
        if depth > _DEEPEST:
            self.at += 1
            return self.plain(line.start, line.end)
        return self.list(line, depth) if _DASH.match(self.content(line)) else self.map(line, depth)

    def list(self, first: Line, depth: int) -> ListNode:
        items: list[Node] = []
        line: Line | None = first
        while line is not None and line.indent >= first.indent:
            dash = _DASH.match(self.content(line))
            if not dash or line.indent > first.indent:
                if line.indent == first.indent:
                    break
                self.at += 1
            else:
                items.append(self.item(line, dash.end(), depth))
            line = self.peek()
        end = items[-1].end if items else first.end
        return ListNode(first.start, max(end, first.start + 1), tuple(items))

    def item(self, line: Line, width: int, depth: int) -> Node:
        rest = Line(line.indent + width, line.start + width, line.end)
        content = self.content(rest)
        if not content:
            self.at += 1
            return self.below(line, depth, at_least=line.indent + 1)
        if _DASH.match(content) or (_KEY.match(content) and not is_flow(self.text, rest.start)):
            return self.block(rest, depth + 1)
        return self.value(rest.start, line, depth, block=False)

    def map(self, first: Line, depth: int) -> Node:
        entries: list[Entry] = []
        line: Line | None = first
        while line is not None and line.indent >= first.indent:
            if line is not first and line.indent == first.indent and _DASH.match(self.content(line)):
                break
            entries.append(self.entry(line, first.indent, depth))
            line = self.peek()
        if len(entries) == 1 and entries[0].value.end == entries[0].key.end:
            return entries[0].key
        return MapNode(first.start, max(entries[-1].value.end, entries[-1].key.end), tuple(entries))

    def entry(self, line: Line, indent: int, depth: int) -> Entry:
        content = self.content(line)
        found = _KEY.match(content)
        if not found or is_flow(self.text, line.start):
            # A key that is still being typed: no colon, no value.
            self.at += 1
            return Entry(self.plain(line.start, line.end), Scalar(line.end, line.end, None, ""))
        key = self.key(line.start, line.start + found.end("key"))
        gap = _BLANKS.match(self.text, line.start + found.end(), line.end)
        start = gap.end() if gap else line.end
        if start == line.end:
            self.at += 1
            return Entry(key, self.below(Line(indent, line.start, line.end), depth, at_least=indent))
        return Entry(key, self.value(start, Line(indent, line.start, line.end), depth, block=True))

    def below(self, owner: Line, depth: int, at_least: int) -> Node:
        """Read the value that stands on the lines below its key or its dash; a list may stand right under its key."""
        line = self.peek()
        if line is not None and line.indent >= at_least:
            is_list = _DASH.match(self.content(line)) is not None
            if line.indent > owner.indent or is_list:
                return self.block(line, depth + 1)
        return Scalar(owner.end, owner.end, None, "")

    def value(self, start: int, owner: Line, depth: int, *, block: bool) -> Node:
        """Read a value that begins on the line of its key or its dash."""
        self.at += 1
        properties = _PROPERTIES.match(self.text, start, owner.end)
        inner = properties.end() if properties else start
        header = _BLOCK.match(self.text[inner : owner.end])
        if header:
            return self.literal(inner, owner)
        if inner == owner.end:
            return self.below(owner, depth, at_least=owner.indent + 1) if block else self.plain(inner, inner)
        if is_flow(self.text, inner) or self.text[inner] in "\"'":
            # An open brace or quote ends where the lines are no longer below its key.
            limit = self.end_below(owner)
            node = (
                flow(self.text, inner, limit)
                if is_flow(self.text, inner)
                else quoted(self.text, inner, owner.end, limit)
            )
            self.skip(node.end)
            return node
        return self.plain(inner, inner + _before_comment(self.text[inner : owner.end]))

    def literal(self, start: int, owner: Line) -> Scalar:
        """Read a literal or folded scalar; folding is not undone, which no name and no template minds."""
        limit = self.end_below(owner)
        rows = _BREAK.split(self.text[owner.end : limit])[1:]
        filled = [row for row in rows if row.strip()]
        indent = len(filled[0]) - len(filled[0].lstrip(" ")) if filled else 0
        while rows and not rows[-1].strip():
            rows.pop()
        value = "\n".join(row[indent:] for row in rows) + ("\n" if rows else "")
        end = start + len(self.text[start:limit].rstrip())
        self.skip(end)
        return Scalar(start, end, value, value, "|")

    def end_below(self, owner: Line) -> int:
        """Give the end of the lines that lie deeper than the key or the dash they belong to."""
        number = self.at
        while number < len(self.lines) and self.lines[number].indent > owner.indent:
            number += 1
        return self.lines[number - 1].end if number else owner.end

    def skip(self, offset: int) -> None:
        while self.at < len(self.lines) and self.lines[self.at].start < offset:
            self.at += 1

    def key(self, start: int, end: int) -> Scalar:
        text = self.text[start:end]
        if text[:1] in ("'", '"') and len(text) > 1:
            return Scalar(start, end, text[1:-1], text[1:-1], text[0])
        return Scalar(start, end, text, text)

    def plain(self, start: int, end: int) -> Scalar:
        text = self.text[start:end]
        return Scalar(start, end, resolve(text), text)


def _before_comment(content: str) -> int:
    """Give the length of a plain value without the comment behind it."""
    places = [place for mark in (" #", "\t#") if (place := content.find(mark)) >= 0]
    return len(content[: min(places)].rstrip()) if places else len(content)


def _lines(text: str) -> Iterator[Line]:
    """Give the lines that have content; comments have none."""
    start = 0
    for found in chain(((brk.start(), brk.end()) for brk in _BREAK.finditer(text)), [(len(text), len(text))]):
        content = text[start : found[0]].rstrip(" \t")
        indent = len(content) - len(content.lstrip(" \t"))
        if len(content) > indent and content[indent] != "#":
            yield Line(indent, start + indent, start + len(content))
        start = found[1]
