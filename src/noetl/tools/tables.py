"""What SQL kinds share when they run: the statements of a task, rows for a table, and rows as plain data.

Which driver sends them is each kind's own. Tested in tests/tools/test_duckdb.py and test_postgres.py.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from noetl.expr.sql import split_statements
from noetl.model.outcome import Outcome, failed
from noetl.ports import ToolContext
from noetl.tools.fields import SqlInput, script_text

_LEAST, _MOST = -(2**63), 2**64 - 1  # whole numbers that every part of the system can carry; larger ones are texts
KEY_COLUMN = "idempotency_key"


class RowsError(Exception):
    """Rows cannot be read or written; the outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error.message if outcome.error else "")
        self.outcome = outcome


async def statements(input: SqlInput, context: ToolContext) -> list[str]:
    """Give the statements of a task, in order. Raises UnreadableError where a script cannot be fetched."""
    if input.script is not None:
        return split_statements(await script_text(input.script, context))
    given = input.command or input.query or input.commands or ""
    texts = [given] if isinstance(given, str) else given
    return [statement for text in texts for statement in split_statements(text)]


def name(text: str) -> str:
    """Quote a name; dots part schema and table."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in text.split("."))


def rows_to_write(input: SqlInput, context: ToolContext) -> list[dict[str, Any]]:
    """Give the rows that a table write is about: its `values`, else the task's own input. Raises RowsError."""
    given = input.values if input.values is not None else dict(context.own)
    rows = [dict(row) for row in (given if isinstance(given, list) else [given])]
    if input.mode == "upsert" and input.key is None:
        several = len(rows) > 1
        for index, row in enumerate(rows):
            own = f"{context.idempotency_key}:{index}" if several else context.idempotency_key
            row.setdefault(KEY_COLUMN, own)
    keys = key_columns(input) if input.mode == "upsert" else []
    for row in rows:
        if not row:
            raise RowsError(
                failed("schema", "there is nothing to write: name the columns with `values`, or with `args`")
            )
        missing = [key for key in keys if key not in row]
        if missing:
            raise RowsError(failed("schema", f"a row has no `{missing[0]}`, which is its key"))
    return rows


def key_columns(input: SqlInput) -> list[str]:
    """Give the columns that tell rows apart."""
    return [input.key] if isinstance(input.key, str) else list(input.key or [KEY_COLUMN])


def percent_statement(input: SqlInput, columns: Sequence[str]) -> str:
    """Give the statement that writes one row, for a driver whose places are `%s`: other percent signs are doubled."""
    if any("\x00" in text for text in (input.table or "", *columns)):
        raise RowsError(failed("schema", "a name of a table or column must not hold a zero byte"))
    return write_statement(input, columns, ["\x00"] * len(columns)).replace("%", "%%").replace("\x00", "%s")


def write_statement(input: SqlInput, columns: Sequence[str], marks: Sequence[str]) -> str:
    """Give the statement that writes one row; `marks` are the driver's places for its values."""
    table = name(input.table or "")
    listed = ", ".join(map(name, columns))
    sql = f"INSERT INTO {table} ({listed}) VALUES ({', '.join(marks)})"
    if input.mode != "upsert":
        return sql
    keys = key_columns(input)
    changed = [column for column in columns if column not in keys]
    conflict = ", ".join(map(name, keys))
    if not changed:
        return f"{sql} ON CONFLICT ({conflict}) DO NOTHING"
    sets = ", ".join(f"{name(column)} = EXCLUDED.{name(column)}" for column in changed)
    return f"{sql} ON CONFLICT ({conflict}) DO UPDATE SET {sets}"


def answer(columns: Sequence[str], rows: Iterable[Sequence[Any]], count: int | None, status: str) -> dict[str, Any]:
    """Give what one statement came to, as plain data."""
    made = [dict(zip(columns, map(plain, row), strict=True)) for row in rows]
    return {
        "rows": made,
        "row_count": len(made) if count is None else count,
        "columns": list(columns),
        "status": status,
    }


def result_of(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give the result of a task: the last statement's fields, and each statement's own."""
    last = dict(answers[-1]) if answers else answer((), (), 0, "")
    return {**last, **{f"command_{index}": dict(one) for index, one in enumerate(answers)}}


def plain(value: Any) -> Any:
    """Give a database value as plain data: numbers stay numbers where nothing is lost, times become ISO texts."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else str(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(Decimal(value))
    if isinstance(value, Decimal):
        return _number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(bytes(value)).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def _number(value: Decimal) -> Any:
    if not value.is_finite():
        return str(value)
    if value == value.to_integral_value():
        return plain(int(value))
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)
