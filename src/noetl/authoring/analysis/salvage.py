"""Read invalid YAML into nodes by its indentation, while it is typed; never fails.

While a playbook is being typed it mostly cannot be parsed: a key has no colon, a quote or brace is open. The result has
the same nodes as a parsed document, so names and positions are known. It guesses; diagnostics come from
`noetl.dsl.reading.parse` only. Tested in tests/unit/authoring/analysis/test_salvage.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.scalars import resolve

_DIRECTIVE: Final = re.compile(r"---$|\.\.\.$|%[A-Z]")
_BREAK: Final = re.compile("\r\n|\n|\r")
# The bounds limit backtracking on long lines without a colon.
_KEY: Final = re.compile(
    r"(?P<key>\"(?:[^\"\\]|\\.){0,200}\"|'(?:[^']|''){0,200}'|[^\s\"'{}\[\],#&*!|>%@`-][^#]{0,200}?|-[^\s#:][^#:]{0,200}?)"
    r"[ \t]{0,200}:(?=[ \t]|$)"
)
_BLOCK: Final = re.compile(r"(?:[&!]\S*[ \t]+)*(?P<style>[|>])[-+0-9]*(?:[ \t]+#.*)?$")
_PROPERTIES: Final = re.compile(r"(?:[&!][^\s,\[\]{}]*(?:[ \t]+|$))*")
_DASH: Final = re.compile(r"-(?:[ \t]+|$)")
_BLANKS: Final = re.compile("[ \t]*")
_SPACE: Final = re.compile(r"(?:\s+|#[^\r\n]*)*")
_TEMPLATE: Final = re.compile(r"\{\{[^\r\n]*?\}\}|\{\{[^\r\n]*")
_PLAIN: Final = re.compile(r"(?:\{\{[^\r\n]*?\}\}|:(?![\s,\[\]{}]|\Z)|[^\s,\[\]{}:]|[ \t]+(?![\s,\[\]{}:#]|\Z))+")
_QUOTED: Final = {'"': re.compile(r"(?:[^\"\\]|\\.)*", re.DOTALL), "'": re.compile(r"(?:[^']|'')*")}
_ESCAPED: Final = {'"': '\\"', "'": "''"}
_TO_LINE_END: Final = re.compile(r"[^\r\n]*")
_DEEPEST: Final = 60


class Line(NamedTuple):
    """Content of a line, or its rest after a dash: column and range in the text."""

    indent: int
    start: int
    end: int


def salvage(text: str) -> Node | None:
    """Return the nodes that the indentation suggests; None for empty text."""
    return _Reader(text).root()


class _Reader:
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
        """Read the node that begins at a line (the next one, or its rest)."""
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
            # Incomplete key: no colon, no value.
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
        """Read the value below its key or dash; a list may start at the key's column."""
        line = self.peek()
        if line is not None and line.indent >= at_least:
            is_list = _DASH.match(self.content(line)) is not None
            if line.indent > owner.indent or is_list:
                return self.block(line, depth + 1)
        return Scalar(owner.end, owner.end, None, "")

    def value(self, start: int, owner: Line, depth: int, *, block: bool) -> Node:
        self.at += 1
        properties = _PROPERTIES.match(self.text, start, owner.end)
        inner = properties.end() if properties else start
        header = _BLOCK.match(self.text[inner : owner.end])
        if header:
            return self.literal(inner, owner)
        if inner == owner.end:
            return self.below(owner, depth, at_least=owner.indent + 1) if block else self.plain(inner, inner)
        if is_flow(self.text, inner) or self.text[inner] in "\"'":
            # An open brace or quote ends where the lines are no longer indented below its key.
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
        """Read a literal or folded scalar, without unfolding it."""
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
    places = [place for mark in (" #", "\t#") if (place := content.find(mark)) >= 0]
    return len(content[: min(places)].rstrip()) if places else len(content)


def _lines(text: str) -> Iterator[Line]:
    start = 0
    for found in chain(((brk.start(), brk.end()) for brk in _BREAK.finditer(text)), [(len(text), len(text))]):
        content = text[start : found[0]].rstrip(" \t")
        indent = len(content) - len(content.lstrip(" \t"))
        if len(content) > indent and content[indent] != "#":
            yield Line(indent, start + indent, start + len(content))
        start = found[1]


def is_flow(text: str, at: int) -> bool:
    """Whether a flow collection begins here; `{{` is an unquoted template."""
    return text.startswith(("{", "["), at) and not text.startswith("{{", at)


def quoted(text: str, start: int, line_end: int, limit: int) -> Scalar:
    """Read a quoted scalar; if not closed before the limit, it ends with its line.

    Escapes stay as written, except an escaped quote: a blank and the quote, so every character keeps its offset.
    """
    style = text[start]
    body = _QUOTED[style].match(text, start + 1, limit)
    end = body.end() if body else start + 1
    if text.startswith(style, end) and end < limit:
        value = text[start + 1 : end].replace(_ESCAPED[style], f" {style}")
        return Scalar(start, end + 1, value, value, style)
    rest = _TO_LINE_END.match(text, start, max(line_end, start + 1))
    value = (rest[0] if rest else style)[1:]
    return Scalar(start, start + 1 + len(value), value, value, style)


def flow(text: str, start: int, limit: int) -> Node:
    """Read a flow list or map; what is open at the limit ends there."""
    return _Flow(text, limit).value(start, 0)


class _Flow:
    """Reads flow nodes from left to right; each node's end is where the next begins."""

    def __init__(self, text: str, limit: int) -> None:
        self.text = text
        self.limit = limit

    def gap(self, at: int) -> int:
        found = _SPACE.match(self.text, at, self.limit)
        return found.end() if found else at

    def sees(self, marks: str, at: int) -> bool:
        return at < self.limit and self.text[at] in marks

    def value(self, at: int, depth: int) -> Node:
        if is_flow(self.text, at) and at < self.limit and depth < _DEEPEST:
            return self.map(at, depth + 1) if self.text[at] == "{" else self.list(at, depth + 1)
        return self.scalar(at)

    def scalar(self, at: int) -> Scalar:
        if self.sees("\"'", at):
            line = _TO_LINE_END.match(self.text, at, self.limit)
            return quoted(self.text, at, line.end() if line else self.limit, self.limit)
        template = _TEMPLATE.match(self.text, at, self.limit)
        if template:
            return Scalar(at, template.end(), template[0], template[0])
        found = _PLAIN.match(self.text, at, self.limit)
        text = found[0] if found else ""
        return Scalar(at, at + len(text), resolve(text), text)

    def list(self, start: int, depth: int) -> ListNode:
        items: list[Node] = []
        at = self.gap(start + 1)
        while at < self.limit and not self.sees("]}", at):
            item = self.value(at, depth)
            if item.end > at:
                items.append(item)
            at = self.after(item.end, at)
        return ListNode(start, min(at + 1, self.limit) if self.sees("]", at) else at, tuple(items), flow=True)

    def map(self, start: int, depth: int) -> MapNode:
        entries: list[Entry] = []
        at = self.gap(start + 1)
        while at < self.limit and not self.sees("]}", at):
            key = self.scalar(at)
            colon = self.gap(key.end)
            if self.sees(":", colon):
                value = self.value(self.gap(colon + 1), depth)
                entries.append(Entry(key, value))
                at = self.after(max(value.end, colon + 1), at)
            else:
                if key.end > at:
                    entries.append(Entry(key, Scalar(key.end, key.end, None, "")))
                at = self.after(key.end, at)
        end = min(at + 1, self.limit) if self.sees("}", at) else at
        return MapNode(start, end, tuple(entries), flow=True)

    def after(self, end: int, before: int) -> int:
        """Return where the next item begins; always advances."""
        at = self.gap(end)
        if self.sees(",", at) or at == before:
            at = self.gap(at + 1)
        return at
