"""Incremental SQL lexer: tracks code, quotes, dollar quotes and comments.

PostgreSQL's lexical rules, which DuckDB shares, with Snowflake's differences. The body of `DO` and of a function is code
inside a dollar quote and is read as such. Tested in tests/unit/expr/sql/test_statements.py and test_sql_split.py.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct, field

from noetl.expr.errors import EvaluationError

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+)|(?P<line>--)|(?P<block>/\*)|(?P<escape>[eE]')|(?P<single>')|(?P<double>")
    |(?P<dollar>\$(?:[^\W\d]\w*)?\$)|(?P<word>[^\W\d][\w$]*)|(?P<number>\d[\w.]*|\.\d\w*)|(?P<cast>::)|(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ENDS: Final = {
    "single": re.compile(r"''|'"),
    "escape": re.compile(r"''|\\.|\\\Z|'", re.DOTALL),
    "double": re.compile(r'""|"'),
    "line": re.compile(r"[\n\r]"),
    "block": re.compile(r"/\*|\*/"),
}
_CLAUSES: Final = frozenset({
    "SELECT", "FROM", "WHERE", "SET", "BY", "VALUES", "INTO", "HAVING", "LIMIT", "OFFSET", "ON", "USING", "RETURNING",
    "TABLE", "TRUNCATE", "WITH", "CONFLICT", "WHEN", "THEN", "ELSE", "JOIN", "UNION", "EXCEPT", "INTERSECT", "VIEW",
    "INDEX", "SCHEMA", "SEQUENCE", "CHECK", "DEFAULT", "AS", "WINDOW", "COPY",
})  # fmt: skip
_KEPT: Final = 8
_DEFINED: Final = frozenset({"FUNCTION", "PROCEDURE", "TASK"})
_RUNNING: Final = frozenset({"DBLINK", "DBLINK_EXEC", "SCHEDULE", "SCHEDULE_IN_DATABASE"})
_NOTED: Final = {"single": "TEXT", "escape": "ESCAPE", "double": "NAME"}


class Paren(Struct):
    """Open bracket or whole statement: the words before it, and its current clause."""

    before: tuple[str, ...] = ()
    clause: str = ""
    items: int = 0  # tokens inside so far


class Code(Struct):
    """Statements: the outermost text, or the body of a dollar quote."""

    delimiter: str = ""
    opened: int = 0  # index of the delimiter in the output
    first: str = ""  # first word of the statement
    words: list[str] = []  # all words of the statement
    tokens: list[str] = []  # last few tokens
    parens: list[Paren] = field(default_factory=lambda: [Paren()])
    atomic: int = 0  # blocks of `BEGIN ATOMIC` that are open
    mode: str = "code"  # code, single, escape, double, dollar, line, block
    inner: str = ""  # the delimiter of a dollar quote that is text
    inner_opened: int = 0
    depth: int = 0  # of nested comments

    def note(self, token: str) -> None:
        """Record a token."""
        paren = self.parens[-1]
        if token == "(":
            paren.items += 1
            self.parens.append(Paren(tuple(self.tokens)))
        elif token == ")":
            if len(self.parens) > 1:
                self.parens.pop()
        else:
            paren.items += 1
            if token in _CLAUSES:
                paren.clause = token
        self.tokens.append(token)
        del self.tokens[:-_KEPT]

    def note_word(self, word: str) -> None:
        upper = word.upper()
        self.first = self.first or upper
        before = self.words[-1] if self.words else ""
        self.words.append(upper)
        if upper == "ATOMIC" and before == "BEGIN":
            self.atomic = 1
        elif self.atomic and upper in ("BEGIN", "CASE"):
            self.atomic += 1
        elif self.atomic and upper == "END":
            self.atomic -= 1
        self.note(upper)

    def end_statement(self) -> None:
        self.first = ""
        self.words, self.tokens, self.parens, self.atomic = [], [], [Paren()], 0

    @property
    def is_program(self) -> bool:
        """Whether a dollar quote is code: body of `DO` or a function, or text to run."""
        if self.first in ("DO", "EXECUTE") or not _RUNNING.isdisjoint(self.words):
            return True
        return self.first == "CREATE" and not _DEFINED.isdisjoint(self.words)


class Lexer:
    """Lexer state; `feed` copies its input to `out`."""

    def __init__(self, bodies: bool = True, snowflake: bool = False) -> None:
        self.out: list[str] = []
        self.ends: list[tuple[int, int]] = []  # positions of the semicolons
        self.statements: list[list[str]] = []  # words of each statement
        self._bodies = bodies  # read the bodies of functions as code
        self._snowflake = snowflake  # backslashes escape in every string, `//` is a comment, dollar quotes have no name
        self._codes = [Code()]

    @property
    def code(self) -> Code:
        return self._codes[-1]

    @property
    def last(self) -> str:
        """Last character so far."""
        if self.out and self.out[-1]:
            return self.out[-1][-1]
        return next((part[-1] for part in reversed(self.out) if part), "")

    def feed(self, text: str) -> None:
        position, codes = 0, self._codes
        while position < len(text):
            code = codes[-1]
            limit = text.find(code.delimiter, position) if code.delimiter else -1
            end = len(text) if limit < 0 else limit
            while position < end and codes[-1] is code:
                step = self._code if code.mode == "code" else self._quoted
                position = step(code, text, position, end)
            if codes[-1] is code and limit >= 0:
                self._close_body()
                position = limit + len(code.delimiter)

    def put(self, text: str) -> None:
        """Append text without lexing it: a complete token in any mode."""
        self.out.append(text)

    def finish(self) -> str:
        return "".join(self.out)

    def _quoted(self, code: Code, text: str, position: int, end: int) -> int:
        if code.mode == "dollar":
            return self._dollar(code, text, position, end)
        match = _ENDS[code.mode].search(text, position, end)
        if match is None:
            self.out.append(text[position:end])
            return end
        self.out.append(text[position : match.end()])
        found = match.group()
        if code.mode == "block":
            code.depth += 1 if found == "/*" else -1
            if not code.depth:
                code.mode = "code"
        elif len(found) == 1 and found != "\\":
            code.mode = "code"
        return match.end()

    def _dollar(self, code: Code, text: str, position: int, end: int) -> int:
        found = text.find(code.inner, position, end)
        if found < 0:
            self.out.append(text[position:end])
            return end
        self.out.append(text[position:found])
        self._close(code.inner, code.inner_opened)
        code.mode = "code"
        return found + len(code.inner)

    def _code(self, code: Code, text: str, position: int, end: int) -> int:
        match = _TOKEN.match(text, position, end)
        if match is None:
            raise AssertionError("every character is a token")
        kind, token = match.lastgroup or "", match.group()
        if self._snowflake:
            kind, token = _as_snowflake(kind, token, text[position : position + 2])
        if kind == "space":
            self.out.append(token)
            return position + len(token)
        if kind in ("word", "number") and _is_word(self.last):  # continues a word that a value began
            kind = "rest"
        if kind == "other" and token == ";":
            self._semicolon(position)
        elif kind in ("line", "block", "single", "escape", "double"):
            if kind == "single" and code.tokens[-1:] == ["ESCAPE"]:
                kind = "escape"  # after a new line it continues the previous string, with its rules
            code.mode, code.depth = kind, 1
            if kind in _NOTED:
                code.note(_NOTED[kind])
        elif kind == "dollar":
            return self._open(token, position + len(token))
        elif kind == "word":
            code.note_word(token)
        elif kind == "number":
            code.note("NUMBER")
        elif kind in ("other", "cast"):
            code.note(token)
        self.out.append(token)
        return position + len(token)

    def _semicolon(self, position: int) -> None:
        code = self.code
        if len(code.parens) > 1 or code.atomic:
            code.note(";")
            return
        if len(self._codes) == 1:
            self.ends.append((position, position + 1))
            self.statements.append(code.words)
        code.end_statement()

    def _open(self, delimiter: str, position: int) -> int:
        code = self.code
        self.out.append(delimiter)
        if self._bodies and code.is_program:
            code.note("TEXT")
            self._codes.append(Code(delimiter, len(self.out) - 1))
        else:
            code.mode, code.inner, code.inner_opened = "dollar", delimiter, len(self.out) - 1
            code.note("TEXT")
        return position

    def _close_body(self) -> None:
        body = self._codes.pop()
        self._close(body.delimiter, body.opened)

    def _close(self, delimiter: str, opened: int) -> None:
        """End a dollar quote; pick another delimiter if a value contains it."""
        body, number, chosen = "".join(self.out[opened + 1 :]), 0, delimiter
        while (body + chosen).find(chosen) != len(body):
            if self._snowflake:
                raise EvaluationError("a value inside `$$` must not contain `$$`", None, "put it in quotes instead")
            number += 1
            chosen = f"$q{number}$"
        self.out[opened] = chosen
        self.out.append(chosen)


def _as_snowflake(kind: str, token: str, two: str) -> tuple[str, str]:
    if two == "//":
        return "line", two
    if kind == "single":
        return "escape", token
    return ("other", "$") if kind == "dollar" and token != "$$" else (kind, token)


def _is_word(char: str) -> bool:
    return bool(char) and (char.isalnum() or char in "_$")
