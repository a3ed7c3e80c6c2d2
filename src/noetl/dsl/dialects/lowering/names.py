"""Older names in templates: `response`, `error`, `result`, `this`, `_loop`.

A name that the document defines itself keeps its meaning. Tested in tests/unit/dsl/dialects/test_lowering.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from noetl.dsl.dialects.lowering.draft import Record, each_text, rewritten
from noetl.dsl.dialects.lowering.lowerings import Lowering
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.expr import Read, TemplateError, compile_template, dotted

_OLDER: Final = re.compile(r"(?<![\w.'\"])(?:response|error|result|this|_loop|status_code)\b")
_IS_DEFINED: Final = re.compile(
    r"(?<![\w.])(response|result|this|error)\s+is\s+(?:(not\s+)defined|defined|(un)defined)\b(?!\s*\.)"
)
# Names at each kind of place, with what they are there now.
ENVELOPE: Final = {
    "response": "outcome.result", "result": "outcome.result", "this": "outcome.result", "error": "outcome.error",
    "error.status": "outcome.error.details.status", "error.status_code": "outcome.error.details.status",
}  # fmt: skip
OF_RULE: Final = ENVELOPE | {
    "error.status": "outcome.http.status", "error.status_code": "outcome.http.status",
    "status_code": "outcome.http.status",
}  # fmt: skip
RESULT: Final = {"response": "output", "result": "output", "this": "output"}
PREVIOUS: Final = {"response": "_prev", "result": "_prev", "this": "_prev"}


def renamed(node: Node, meant: Mapping[str, str], record: Record, lowering: Lowering) -> Node:
    """Return a node whose templates have the names of today."""

    def change(text: Scalar) -> Scalar:
        new = _renamed_text(text, meant, record)
        if new is not text:
            record.note(lowering, text)
        return new

    return each_text(node, change)


def _renamed_text(node: Scalar, meant: Mapping[str, str], record: Record) -> Scalar:
    text = node.text
    if "{" not in text or _OLDER.search(text) is None:
        return node
    try:
        reads = compile_template(text).reads
    except TemplateError:
        return node
    found = [
        read
        for read in reads
        if (read.path[0] in meant or dotted(read.path[:2]) in meant) and read.path[0] not in record.names
    ]
    if not found:
        return node
    edits = {}
    offsets = {read.offset for read in found}
    for match in _IS_DEFINED.finditer(text):
        if match.start() in offsets and meant.get("response") == ENVELOPE["response"]:
            edits[match.start()] = (match.start(), match.end(), _status_test(match))
    for read in found:
        edits.setdefault(read.offset, _edit(text, read, meant))
    return rewritten(node, edits.values())


def _status_test(match: re.Match[str]) -> str:
    is_there = not (match[2] or match[3])
    if match[1] == "error":
        return f"outcome.status {'==' if is_there else '!='} 'error'"
    return f"outcome.status {'==' if is_there else '!='} 'ok'"


def _edit(text: str, read: Read, meant: Mapping[str, str]) -> tuple[int, int, str]:
    start, name = read.offset, str(read.path[0])
    longer = dotted(read.path[:2])
    if longer in meant and text.startswith(longer, start):
        return start, start + len(longer), meant[longer]
    return start, start + len(name), meant.get(name, name)


def replaced(node: Node, meant: Mapping[str, str]) -> Node:
    """Return a node whose templates have expressions for names such as `ctx.a`."""

    def change(text: Scalar) -> Scalar:
        edits = []
        for read in _reads(text.text) if "{{" in text.text else ():
            name = dotted(read.path[:2])
            if name in meant and text.text.startswith(name, read.offset):
                edits.append((read.offset, read.offset + len(name), f"({meant[name]})"))
        return rewritten(text, edits) if edits else text

    return each_text(node, change)


def may_rename(node: Node) -> bool:
    """Return whether a text in a node may read an older name; searches only."""
    if isinstance(node, Scalar):
        return isinstance(node.value, str) and "{{" in node.text and _OLDER.search(node.text) is not None
    if isinstance(node, MapNode):
        return any(may_rename(entry.value) for entry in node.entries)
    return isinstance(node, ListNode) and any(map(may_rename, node.items))


def reads_any(node: Node, names: frozenset[str]) -> bool:
    """Return whether a template in a node reads one of these names."""
    return any(read.path[0] in names for text in texts(node) for read in _reads(text))


def names_read(node: Node, scope: str) -> tuple[str, ...]:
    """Return the names of a scope that templates in a node read, such as `ctx.a`."""
    return tuple(dotted(read.path[:2]) for text in texts(node) for read in _reads(text) if read.path[0] == scope)


def _reads(text: str) -> tuple[Read, ...]:
    try:
        return compile_template(text).reads
    except TemplateError:
        return ()


def texts(node: Node) -> Iterator[str]:
    """Yield every text of a node that holds a template."""
    found: list[str] = []

    def keep(scalar: Scalar) -> Scalar:
        if "{" in scalar.text:
            found.append(scalar.text)
        return scalar

    each_text(node, keep)
    yield from found
