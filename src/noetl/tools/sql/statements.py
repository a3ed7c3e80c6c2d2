"""SQL of a task. Tested in tests/tools/test_duckdb.py and test_postgres.py."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import msgspec

from noetl.expr.sql.statements import split_statements
from noetl.model.outcome import Outcome, failed
from noetl.model.refs import MOST_BYTES
from noetl.ports import ToolContext
from noetl.tools.fields import SqlInput, script_text

_LEAST, _MOST = -(2**63), 2**64 - 1  # integers that every part of the system can carry; larger ones become strings
_PLAIN = frozenset({str, bool, type(None)})  # types of values that are plain data already
_TIMES = frozenset({datetime, date, time})
ROWS_AT_ONCE = 256  # read from a driver
KEY_COLUMN = "idempotency_key"


class RowsError(Exception):
    """Rows cannot be read or written; `outcome` has the reason."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error.message if outcome.error else "")
        self.outcome = outcome


class RowLimit:
    """Bounds the rows of a task while they are read, before they fill the memory."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0

    def plain(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
        """Return a batch of rows as plain data. Raises RowsError beyond the limit."""
        made = plain_rows(columns, rows)
        self._size += len(msgspec.json.encode(made))
        if self._size > self._most:
            message = (
                f"the rows have more than the {self._most:,} bytes that are accepted; select less, or write them to a file "
                "or table"
            )
            raise RowsError(failed("schema", message, code="RESULT_TOO_LARGE", details={"most": self._most}))
        return made


async def statements(input: SqlInput, context: ToolContext) -> list[str]:
    """Return the statements of a task. Raises UnreadableError for a script."""
    if input.script is not None:
        return split_statements(await script_text(input.script, context))
    given = input.command or input.query or input.commands or ""
    texts = [given] if isinstance(given, str) else given
    return [statement for text in texts for statement in split_statements(text)]


def name(text: str) -> str:
    """Quote a name; dots separate schema and table."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in text.split("."))


def rows_to_write(input: SqlInput, context: ToolContext) -> list[dict[str, Any]]:
    """Return the rows to write: `values`, or the task's input. Raises RowsError."""
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
            raise RowsError(failed("schema", "nothing to write: set the columns with `values` or `args`"))
        missing = [key for key in keys if key not in row]
        if missing:
            raise RowsError(failed("schema", f"a row has no value for the key column `{missing[0]}`"))
    return rows


def key_columns(input: SqlInput) -> list[str]:
    """Return the key columns of an upsert."""
    return [input.key] if isinstance(input.key, str) else list(input.key or [KEY_COLUMN])


def percent_statement(input: SqlInput, columns: Sequence[str]) -> str:
    """Return the `INSERT` of one row for `%s` placeholders; doubles other `%`."""
    if any("\x00" in text for text in (input.table or "", *columns)):
        raise RowsError(failed("schema", "a table or column name must not contain a NUL byte"))
    return write_statement(input, columns, ["\x00"] * len(columns)).replace("%", "%%").replace("\x00", "%s")


def write_statement(input: SqlInput, columns: Sequence[str], marks: Sequence[str]) -> str:
    """Return the `INSERT` of one row; `marks` are the driver's placeholders."""
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


def answer(columns: Sequence[str], rows: list[dict[str, Any]], count: int | None, status: str) -> dict[str, Any]:
    """Return the result of one statement; its rows are plain data."""
    return {
        "rows": rows,
        "row_count": len(rows) if count is None else count,
        "columns": list(columns),
        "status": status,
    }


def result_of(answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the result of a task: fields of the last statement, and of each one."""
    last = dict(answers[-1]) if answers else answer((), [], 0, "")
    return {**last, **{f"command_{index}": dict(one) for index, one in enumerate(answers)}}


def plain(value: Any) -> Any:
    """Convert a database value to plain data, without losing precision.

    Numbers that JSON cannot carry exactly become strings, times ISO 8601 strings, bytes Base64.
    """
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


def plain_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Convert rows of a database to plain data, column by column."""
    made = map(plain_column, zip(*rows, strict=True))
    return [dict(zip(columns, row, strict=True)) for row in zip(*made, strict=True)]


def plain_column(values: Sequence[Any]) -> Sequence[Any]:
    """Convert values of a column; one test is enough for many of the same type."""
    types = set(map(type, values))
    if types <= _PLAIN:
        return values
    if types == {int} and min(values) >= _LEAST and max(values) <= _MOST:
        return values
    if types == {float} and all(map(isfinite, values)):
        return values
    if types <= _TIMES:
        return [value.isoformat() for value in values]
    return [plain(value) for value in values]


def _number(value: Decimal) -> Any:
    if not value.is_finite():
        return str(value)
    whole = value.to_integral_value()
    if value == whole:
        return int(value) if _LEAST <= value <= _MOST else f"{whole:f}"  # an `int` of many digits cannot become text
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)
