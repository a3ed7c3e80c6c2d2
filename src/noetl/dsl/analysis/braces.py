"""Braces in the text of a template that its author meant as a template.

Tested in tests/unit/dsl/rules/test_templates.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noetl.expr.syntax.lexer import Lexeme, LexError, scan

_VERBATIM: Final = re.compile(r"\{%[-+]?\s*raw\s*[-+]?%\}.*?\{%[-+]?\s*endraw\s*[-+]?%\}|\{#.*?#\}", re.DOTALL)


def stray_end(text: str) -> int | None:
    """Return the offset of a `}}` without a beginning, or None.

    Braces of JSON in the text are counted. Text with statements or with braces in strings is not judged: it may print them.
    """
    if "}}" not in text:
        return None
    parts = _parts(text)
    if any(part.type == "block_begin" or (part.type == "string" and "{" in part.text) for part in parts):
        return None
    depth = 0
    for lexeme in (part for part in parts if part.type == "data"):
        for index, char in enumerate(lexeme.text):
            if char == "}" and lexeme.text[index + 1 : index + 2] == "}" and depth < 2:
                return lexeme.offset + index
            depth = max(depth + (char == "{") - (char == "}"), 0)
    return None


def dollars(text: str) -> Iterator[int]:
    """Yield the offset of each `$` directly before `{{`; `$$` is a quote of SQL."""
    before: Lexeme | None = None
    for lexeme in _parts(text) if "${{" in text else ():
        is_after_text = lexeme.type == "variable_begin" and before is not None and before.type == "data"
        if is_after_text and text[lexeme.offset - 1] == "$" and text[lexeme.offset - 2 : lexeme.offset] != "$$":
            yield lexeme.offset - 1
        before = lexeme


def _parts(text: str) -> list[Lexeme]:
    """Return the lexemes of a template, without comments and verbatim text."""
    lexemes: list[Lexeme] = []
    try:
        scan(_VERBATIM.sub(lambda found: " " * len(found.group()), text), lexemes)
    except LexError:
        return []
    return lexemes
