"""Rows for PostgreSQL as the text of `COPY`, where it does what `INSERT` does.

`COPY` does not convert values, needs a plain table, and ignores rules: other tables and values that PostgreSQL would
convert (a number with a fraction for an integer column, a truth value for a text) are inserted. Tested in
tests/tools/sql/test_pg_bulk_load.py.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from noetl.tools.sql.chunk import Chunk
from noetl.tools.sql.statements import name

_INTEGERS: Final = frozenset({20, 21, 23})
_FRACTIONS: Final = frozenset({700, 701, 1700})
_TEXTS: Final = frozenset({25, 1043})
_JSON: Final = frozenset({114, 3802})
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})
_COLUMNS: Final = """SELECT a.attname, a.atttypid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.oid = to_regclass(%s) AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND NOT c.relhasrules
    AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity <> 'a' AND a.attgenerated = ''"""
_MADE: Final[Mapping[type, tuple[frozenset[int] | None, Callable[[Any], str]]]] = {
    str: (None, lambda text: text.translate(_ESCAPES)),  # for any type: the server reads it as in `INSERT`
    int: (_INTEGERS | _FRACTIONS | _TEXTS, str),
    float: (_FRACTIONS, repr),
    bool: (frozenset({16}), lambda value: "t" if value else "f"),
    dict: (_JSON, lambda value: json.dumps(value).translate(_ESCAPES)),
    type(None): (None, lambda _: "\\N"),
}


class Copy:
    """One `COPY` for as many chunks as possible; the server works during reads."""

    def __init__(self, cursor: Any, table: str, types: Mapping[str, int]) -> None:
        self._cursor = cursor
        self._table = table
        self._types = types
        self._open = AsyncExitStack()
        self._columns: list[str] | None = None  # of the open statement
        self._writer: Any = None

    async def add(self, columns: list[str], chunk: Chunk) -> bool:
        """Send rows; False if they must be inserted, and the cursor is free for it."""
        text = _copy_text(columns, chunk, self._types)
        if text is None or columns != self._columns:
            await self._open.aclose()
            self._columns = None
        if text is None:
            return False
        if self._columns is None:
            listed = ", ".join(map(name, columns))
            statement = f"COPY {name(self._table)} ({listed}) FROM STDIN"
            self._writer = await self._open.enter_async_context(self._cursor.copy(statement))
            self._columns = columns
        await self._writer.write(text)
        return True

    async def __aenter__(self) -> Copy:
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._open.__aexit__(*raised)


@asynccontextmanager
async def copy_into(cursor: Any, table: str, *, allowed: bool) -> AsyncIterator[Copy]:
    """Open a `Copy` for a table; it ends, and reports its errors, with the block."""
    types: dict[str, int] = {}
    if allowed:
        await cursor.execute(_COLUMNS, [name(table)])
        types = {str(column): int(type_) for column, type_ in await cursor.fetchall()}
    async with Copy(cursor, table, types) as copy:
        yield copy


def _copy_text(columns: Sequence[str], chunk: Chunk, types: Mapping[str, int]) -> str | None:
    """Return rows as the text of `COPY`; None if they must be inserted."""
    made = []
    for column in columns:
        cells = _cells(chunk.column(column), types.get(column))
        if cells is None:
            return None
        made.append(cells)
    text = "\n".join(map("\t".join, zip(*made, strict=True))) + "\n"
    return None if "\x00" in text else text


def _cells(values: Sequence[Any], column_type: int | None) -> Sequence[str] | None:
    kinds = set(map(type, values))
    if column_type is None or not kinds <= _MADE.keys():
        return None
    if any(allowed is not None and column_type not in allowed for allowed, _ in map(_MADE.__getitem__, kinds)):
        return None
    if kinds == {str} and not _needs_escape("".join(values)):
        return values
    if len(kinds) == 1:
        return list(map(_MADE[kinds.pop()][1], values))
    return [_MADE[type(value)][1](value) for value in values]


def _needs_escape(text: str) -> bool:
    return "\\" in text or "\n" in text or "\r" in text or "\t" in text
