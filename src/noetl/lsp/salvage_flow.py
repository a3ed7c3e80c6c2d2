"""Reads quoted texts and flow collections that may still be open, up to a limit; never fails.

A part of `salvage`, tested with it in tests/unit/lsp/test_salvage.py.
"""

from __future__ import annotations

import re
from typing import Final

from noetl.dsl.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.dsl.scalars import resolve

_SPACE: Final = re.compile(r"(?:\s+|#[^\r\n]*)*")
_TEMPLATE: Final = re.compile(r"\{\{[^\r\n]*?\}\}|\{\{[^\r\n]*")
_PLAIN: Final = re.compile(r"(?:\{\{[^\r\n]*?\}\}|:(?![\s,\[\]{}]|\Z)|[^\s,\[\]{}:]|[ \t]+(?![\s,\[\]{}:#]|\Z))+")
_QUOTED: Final = {'"': re.compile(r"(?:[^\"\\]|\\.)*", re.DOTALL), "'": re.compile(r"(?:[^']|'')*")}
_ESCAPED: Final = {'"': '\\"', "'": "''"}
_TO_LINE_END: Final = re.compile(r"[^\r\n]*")
_DEEPEST: Final = 60


def is_flow(text: str, at: int) -> bool:
    """Tell whether a flow collection begins here; `{{` begins a template that somebody forgot to quote."""
    return text.startswith(("{", "["), at) and not text.startswith("{{", at)


def quoted(text: str, start: int, line_end: int, limit: int) -> Scalar:
    """Read a quoted text; one that is not closed before the limit ends with its line.

    Escapes stay as they are written, but for quotes: a blank and the quote, so that each character keeps its place.
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
    """Read a list or a map in braces; what is open at the limit ends there."""
    return _Flow(text, limit).value(start, 0)


class _Flow:
    """Reads from left to right; every part tells by its end where the next one begins."""

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
        """Give where the next part begins; always further on, whatever stands there."""
        at = self.gap(end)
        if self.sees(",", at) or at == before:
            at = self.gap(at + 1)
        return at
