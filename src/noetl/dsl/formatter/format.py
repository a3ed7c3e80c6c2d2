"""Format the text of a playbook without changing its meaning or its comments.

The result is parsed and compared with the original before it is returned. Texts with read problems, JSON, and a few rare
spellings (keys with `?`, a tagged root, line breaks other than LF and CRLF) are returned unchanged.
Tested in tests/unit/dsl/formatter/test_format.py and test_format_laws.py.
"""

from __future__ import annotations

import re
from typing import Final

from yaml import YAMLError

from noetl.dsl.formatter.cst import Collection
from noetl.dsl.formatter.cst_builder import Dissection
from noetl.dsl.formatter.key_order import arrange
from noetl.dsl.formatter.scan import Scan, UnsupportedError
from noetl.dsl.formatter.write import Writer
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.parse import Document, parse

_ODD_BREAKS: Final = re.compile("[\r\x85\u2028\u2029]")


def format_text(text: str, file: str = "<playbook>") -> str:
    """Return the formatted text, or the text unchanged if that is not safe."""
    before = parse(text.replace("\r\n", "\n"), file)
    if has_faults(before) or _ODD_BREAKS.search(before.source.text):
        return text
    # An alias must not move before its anchor: keep the order where the canonical order would do that.
    for reorder in (True, False):
        formatted = lay_out(before.source.text, reorder=reorder)
        if formatted is not None and means_the_same(before, formatted):
            return formatted
    return text


def has_faults(document: Document) -> bool:
    """Return whether a document has read problems that prevent formatting."""
    return document.root is None or any(problem.kind != "legacy-boolean" for problem in document.problems)


def lay_out(text: str, *, reorder: bool) -> str | None:
    """Return the formatted text, unverified; None for an unsupported spelling."""
    try:
        scan = Scan(text)
        root = Dissection(scan).root
        if reorder:
            arrange(root)
        _lift_comments(root)
        writer = Writer(text)
        writer.verbatim(scan.prologue)
        writer.root(root)
        writer.verbatim(scan.epilogue)
    except (UnsupportedError, YAMLError):  # JSON may contain escapes that YAML does not support
        return None
    return writer.finish()


def _lift_comments(block: Collection) -> None:
    for entry in block.entries:
        value = entry.value
        if not isinstance(value, Collection) or value.flow:
            continue
        _lift_comments(value)
        first = value.entries[0]
        if entry.key is None and not entry.beside and not value.properties and first.leading:
            first.leading[0].after_empty_line = entry.after_empty_line
            entry.leading += first.leading
            entry.after_empty_line = first.after_empty_line
            first.leading, first.after_empty_line = [], False


def means_the_same(before: Document, formatted: str) -> bool:
    """Return whether a text has the data and comments of a document."""
    after = parse(formatted)
    if has_faults(after) or before.root is None or after.root is None or not _same(before.root, after.root):
        return False
    try:
        return Scan(before.source.text).comment_texts() == Scan(formatted).comment_texts()
    except UnsupportedError:
        return False


def _same(one: Node, other: Node) -> bool:
    """Compare by value: NaN equals NaN, and 1 differs from true."""
    if isinstance(one, Scalar):
        return isinstance(other, Scalar) and repr(one.value) == repr(other.value)
    if isinstance(one, ListNode):
        return (
            isinstance(other, ListNode)
            and len(one.items) == len(other.items)
            and all(map(_same, one.items, other.items))
        )
    if not isinstance(one, MapNode) or not isinstance(other, MapNode) or len(one.entries) != len(other.entries):
        return False
    values = ((entry.value, other.get(entry.key.text)) for entry in one.entries)
    return all(theirs is not None and _same(ours, theirs) for ours, theirs in values)
