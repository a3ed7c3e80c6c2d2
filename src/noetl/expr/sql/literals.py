"""Write values as SQL. Tested in tests/unit/expr/sql/test_statements.py."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timedelta
from typing import Any

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import shown


def as_text(value: Any) -> str:
    """Return the text inside quotes: lists and maps as JSON, others as in templates."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Undefined):
        return ""
    if isinstance(value, list | tuple | dict):
        return _json(value)
    return value.isoformat() if isinstance(value, datetime | date) else str(value)


def literal(value: Any, dialect: str, number: bool = False) -> str:
    """Return a literal of the value's type."""
    if value is None or isinstance(value, Undefined):
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"CAST('{value}' AS DOUBLE PRECISION)"
    if isinstance(value, timedelta):
        return f"'{value.total_seconds():f} seconds'"
    text = as_text(value)
    if number and text.isascii() and text.isdigit():
        return text
    return _quoted(text, dialect)


def _quoted(text: str, dialect: str) -> str:
    if "\0" in text:
        raise EvaluationError("a string for SQL must not contain the character NUL")
    escaped = text.replace("'", "''")
    if "\\" in text and dialect == "postgres":  # parsed the same way under every server setting
        return " E'" + escaped.replace("\\", "\\\\") + "'"
    if dialect == "snowflake":
        escaped = escaped.replace("\\", "\\\\")
    return f"'{escaped}'"


def identifier(value: Any) -> str:
    """Return a quoted identifier; dots outside quotes separate its parts."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        found = "null" if value is None else shown(as_text(value))
        raise EvaluationError(f"expected a name, not {found!r}", None, "use a string such as `public.orders`")
    parts = _parts(str(value))
    if not all(parts) or any("\0" in part for part in parts):
        raise EvaluationError(f"{shown(str(value))!r} is not a name", None, "use a string such as `public.orders`")
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def _parts(text: str) -> list[str]:
    parts, rest = [], text.strip()
    while True:
        if rest.startswith('"'):
            end = 1
            while end < len(rest) and not (rest[end] == '"' and rest[end : end + 2] != '""'):
                end += 2 if rest[end] == '"' else 1
            if end < len(rest) and rest[end + 1 : end + 2] in ("", "."):
                parts.append(rest[1:end].replace('""', '"'))
                rest = rest[end + 1 :]
                if not rest:
                    return parts
                rest = rest[1:]
                continue
        head, dot, rest = rest.partition(".")
        parts.append(head)
        if not dot:
            return parts


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"cannot be serialized as JSON: {error}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    raise TypeError(f"{type(value).__name__} is not plain data")
