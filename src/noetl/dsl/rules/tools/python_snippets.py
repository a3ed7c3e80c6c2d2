"""Parse Python snippets of a playbook.

The grammar is that of the Python that runs the check. A top-level `return` or `await` is allowed.
Tested in tests/unit/dsl/rules/test_tools.py.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import accumulate
from textwrap import dedent

from msgspec import Struct

# Python warns about unknown escapes such as `\\d`; replace them before parsing.
_ESCAPE = re.compile(r"\\(?![\n'\"\\abfnrtv0-7xNuU])|\\\\", re.DOTALL)


class Refusal(Struct, frozen=True):
    """Why a snippet is not valid Python, and the offset of the error in its text."""

    message: str
    offset: int


@lru_cache(maxsize=512)
def read(text: str) -> ast.Module | Refusal | None:
    """Return the tree of a snippet, or its error; None if it is too large."""
    plain = dedent(text)
    lines = text.split("\n")
    margin = _margin(lines, plain.split("\n"))
    try:
        return ast.parse(_ESCAPE.sub(lambda match: match[0] if len(match[0]) > 1 else "_", plain))
    except SyntaxError as error:
        return Refusal(error.msg, _offset(lines, error.lineno or 1, (error.offset or 1) - 1 + margin))
    except (ValueError, RecursionError, MemoryError):
        return None


class Places:
    """The offsets of the nodes of a snippet in its text."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._plain = dedent(text).split("\n")
        self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        self._margin = _margin(self._lines, self._plain)

    def of(self, node: ast.expr) -> int:
        """Return the offset of a tree node."""
        line = self._plain[node.lineno - 1].encode()[: node.col_offset].decode()
        number = min(max(node.lineno, 1), len(self._lines)) - 1
        return self._starts[number] + _column(self._lines[number], len(line) + self._margin)


def _margin(lines: list[str], dedented: list[str]) -> int:
    pairs = zip(lines, dedented, strict=False)
    return next((len(line) - len(plain) for line, plain in pairs if plain.strip()), 0)


def _offset(lines: list[str], number: int, column: int) -> int:
    number = min(max(number, 1), len(lines))
    before = sum(len(line) + 1 for line in lines[: number - 1])
    return before + _column(lines[number - 1], column)


def _column(line: str, column: int) -> int:
    """Return a column inside of a line, after its indentation."""
    indent = len(line) - len(line.lstrip())
    return min(max(column, indent), len(line))
