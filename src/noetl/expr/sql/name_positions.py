"""Decide whether SQL expects a name or a value at a position.

A name is expected after `FROM`, `INTO`, `TABLE` and the like, beside a dot, and in a list of columns. Everything else is a
value. Tested in tests/unit/expr/sql/test_statements.py.
"""

from __future__ import annotations

from typing import Final

from noetl.expr.sql.lexer import Code, Paren

_BEFORE_NAME: Final = frozenset({
    "JOIN", "INTO", "UPDATE", "TABLE", "VIEW", "SCHEMA", "DATABASE", "SEQUENCE", "INDEX", "COLUMN", "CONSTRAINT",
    "TRUNCATE", "ONLY", "REFERENCES", "DESCRIBE", "SUMMARIZE", "ANALYZE", "VACUUM", "COPY", "EXTENSION", "ROLE", "USER",
    "FUNCTION", "PROCEDURE", "TYPE", "TRIGGER", "POLICY", "PUBLICATION", "DOMAIN", "USE", "LISTEN", "NOTIFY", "REINDEX",
    "CLUSTER", "CONCURRENTLY", "WITH", "RECURSIVE", "AS", ".", "::",
})  # fmt: skip
_OF_FUNCTIONS: Final = frozenset({"EXTRACT", "SUBSTRING", "TRIM", "OVERLAY"})  # `FROM` inside them comes before a value
_DEFINING: Final = frozenset({"CREATE", "DROP", "GRANT", "REVOKE", "COMMENT"})
_LISTS: Final = frozenset({"TABLE", "TRUNCATE", "VIEW", "INDEX", "SCHEMA", "SEQUENCE", "FROM"})
_SORTED: Final = frozenset({"ORDER", "GROUP", "PARTITION", "CLUSTER", "OWNED"})


def name_expected(code: Code, following: str, is_text: bool) -> bool:
    """Whether a value at this position is a name; `following` is the text after it."""
    tokens, paren = code.tokens, code.parens[-1]
    last = tokens[-1] if tokens else ""
    if following[:1] == "." and not following[1:2].isdigit():
        return True
    if following[:1] == "(" and (last in ("", "=", ",", "(", "SELECT", "CALL") or last in _BEFORE_NAME):
        return True
    if last in _BEFORE_NAME:
        return not (last == "WITH" and code.first != "WITH") and not (last == "." and len(tokens) < 2)
    if last == "FROM":
        return _is_table_from(code, paren)
    if last == "EXISTS":
        return "IF" in tokens[-3:-1]
    if last in ("ADD", "DROP", "ALTER", "RENAME"):
        return code.first == "ALTER"
    if last == "TO":
        return code.first in ("ALTER", "GRANT") and "SET" not in tokens
    if last == "ON":
        return code.first in _DEFINING
    if last == "USING":
        return code.first != "EXECUTE"
    if last == "SET":
        return True
    if last == "BY":
        return is_text and len(tokens) > 1 and tokens[-2] in _SORTED
    return last in ("(", ",") and _in_list(code, paren, last, following, is_text)


def _is_table_from(code: Code, paren: Paren) -> bool:
    if paren.before and paren.before[-1] in _OF_FUNCTIONS:
        return False
    return code.tokens[-2:-1] != ["DISTINCT"] or not {"IS", "NOT"} & set(code.tokens[-4:-2])


def _in_list(code: Code, paren: Paren, last: str, following: str, is_text: bool) -> bool:
    if last == ",":
        if paren.clause == "SET":
            return following.lstrip()[:1] == "=" and following.lstrip()[:2] != "=="
        if paren.clause == "BY":
            return is_text
        if paren.clause in _LISTS and len(code.parens) == 1:
            return True
    return _holds_names(code, paren)


def _holds_names(code: Code, paren: Paren) -> bool:
    if not paren.before or paren.clause:
        return False
    if paren.before[-1] in ("CONFLICT", "USING", "KEY", "UNIQUE") or "REFERENCES" in paren.before[-2:]:
        return True
    if len(code.parens) != 2:
        return False
    outer = code.parens[0].clause
    if code.first == "INSERT":
        return outer == "INTO"
    if code.first == "CREATE":
        return ("TABLE" in code.words and outer == "TABLE") or ("INDEX" in code.words and outer in ("ON", "USING"))
    return code.first == "COPY" and outer == "COPY"
