"""Text of a single scalar. Tested in tests/unit/dsl/formatter/test_format.py."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from msgspec import Struct

from noetl.dsl.formatter.cst import Leaf
from noetl.dsl.reading.nodes import Scalar
from noetl.dsl.reading.source_map import indentation, lines_below

_HEADER: Final = re.compile(r"[|>](?P<indicators>[0-9+-]*)(?P<comment>[ \t]*#[^\n]*)?")


class BlockText(Struct, frozen=True):
    """A literal or folded scalar without its indentation."""

    header: str
    comment: str  # after the header, with the white space before it
    lines: list[str]
    keeps_newlines: bool  # empty lines below belong to the value


def leaf_lines(text: str, leaf: Leaf) -> list[str]:
    """Return the lines of a plain or quoted scalar or an alias, without indentation."""
    written = text[leaf.start : leaf.end]
    if leaf.style == "'" and "\n" not in written and not set(leaf.value) & {'"', "\\"}:
        written = f'"{leaf.value}"'
    first, *rest = written.split("\n")
    if not rest:
        return [first]
    lines = [_without_end(first, leaf.style), *(_without_end(line.lstrip(" \t"), leaf.style) for line in rest[:-1])]
    return [*lines, rest[-1].lstrip(" \t")]


def _without_end(line: str, style: str) -> str:
    """Strip white space at the end of a line, except a blank that a backslash escapes."""
    bare = line.rstrip(" \t")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    if style == '"' and backslashes % 2 and bare != line:
        return bare + line[len(bare)]
    return bare


def block_text(text: str, leaf: Leaf) -> BlockText:
    """Return the header, comment and lines of a literal or folded scalar."""
    lines = _content(text, leaf)
    ending = len(leaf.value) - len(leaf.value.rstrip("\n"))
    if not leaf.value:
        match = _HEADER.match(text, leaf.start)
        chomping = "-" if match and "-" in match["indicators"] else ""
    elif not lines:
        chomping, lines = "+", [""] * ending
    else:
        chomping = "" if ending == 1 else "+" if ending else "-"
        lines += [""] * (ending - 1)
    first = next((line for line in lines if line), "")
    indicator = "2" if first.startswith((" ", "\t")) else ""
    header = leaf.style + indicator + chomping
    return BlockText(header, header_comment(text, leaf), lines, keeps_newlines=chomping == "+")


def header_comment(text: str, leaf: Leaf) -> str:
    """Return the comment on a block scalar's header, with white space before it."""
    match = _HEADER.match(text, leaf.start)
    return (match["comment"] or "").rstrip() if match else ""


def content_end(text: str, leaf: Leaf) -> int:
    """Return the offset after the last line of a block scalar's content."""
    if not leaf.value.rstrip("\n") or leaf.value.endswith("\n\n"):
        return leaf.end if leaf.value else leaf.start
    count = len(_content(text, leaf))
    return next(islice(lines_below(text, leaf.start), count - 1, None), (leaf.start, leaf.end))[1]


def _content(text: str, leaf: Leaf) -> list[str]:
    indent = indentation(text, Scalar(leaf.start, leaf.end, None, leaf.value, leaf.style))
    lines = []
    for start, end in lines_below(text, leaf.start):
        if start >= leaf.end:
            break
        lines.append(text[start + indent : end] if start + indent < end else "")
    while lines and not lines[-1]:
        lines.pop()
    return lines
