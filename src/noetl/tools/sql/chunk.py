"""Rows that are read and written together, by column or as maps.

Databases send columns, and `COPY` takes columns: maps are made only for a target that needs them. Tested in
tests/tools/sql/test_chunk.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from noetl.model.outcome import failed
from noetl.tools.sql.statements import RowsError, plain_column

Row = dict[str, Any]
Names = Mapping[str, str]


class Maps:
    """Rows as maps of plain data; each may lack columns."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """Columns of the first row."""
        return list(self.rows[0])

    @property
    def size(self) -> int:
        """Bytes of the rows as JSON."""
        return len(msgspec.json.encode(self.rows))

    def column(self, name: str) -> Sequence[Any]:
        return [row.get(name) for row in self.rows]

    def renamed(self, names: Names) -> Maps:
        """Return these columns, by their new names. Raises RowsError."""
        for row in self.rows:
            _require(names, row)
        return Maps([{new: row[old] for new, old in names.items()} for row in self.rows])


class Columns:
    """Rows of plain data, by column; at least one row."""

    def __init__(self, values: Mapping[str, Sequence[Any]], count: int) -> None:
        self._values = values
        self._count = count

    def __len__(self) -> int:
        return self._count

    @property
    def names(self) -> list[str]:
        return list(self._values)

    @cached_property
    def rows(self) -> list[Row]:
        """The rows as maps."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in zip(*self._values.values(), strict=True)]

    @property
    def size(self) -> int:
        """Bytes of the rows as JSON."""
        between = self._count - 1
        of_values = sum(len(msgspec.json.encode(column)) - len("[]") - between for column in self._values.values())
        each = len(msgspec.json.encode(dict.fromkeys(self._values, 0))) - len(self._values)
        return of_values + self._count * each + between + len("[]")

    def column(self, name: str) -> Sequence[Any]:
        return self._values[name]

    def renamed(self, names: Names) -> Columns:
        """Return these columns, by their new names. Raises RowsError."""
        _require(names, self._values)
        return Columns({new: self._values[old] for new, old in names.items()}, self._count)


Chunk = Maps | Columns


def from_database(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Return rows of a database; of columns with the same name, the last counts."""
    values = map(plain_column, zip(*rows, strict=True))
    return Columns(dict(zip(names, values, strict=True)), len(rows))


def _require(names: Names, there: Mapping[str, Any]) -> None:
    missing = [name for name in names.values() if name not in there]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise RowsError(failed("schema", f"a row of the source has no column {listed}"))
