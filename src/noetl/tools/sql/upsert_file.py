"""Merge rows into a file by key.

Only the new rows are held in memory. Tested in tests/tools/test_transfer.py and test_artifact.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from noetl.model.outcome import failed
from noetl.tools.sql.chunk import Chunk, Row
from noetl.tools.sql.statements import RowsError


class KeyedRows:
    """New rows by key; `upsert` replaces existing rows, `insert` keeps them."""

    def __init__(self, keys: Sequence[str], *, replaces: bool) -> None:
        self._keys = keys
        self._replaces = replaces
        self._fresh: dict[tuple[str, ...], Row] = {}

    async def add(self, chunk: Chunk) -> None:
        """Add new rows. Raises RowsError.

        Of rows with the same key, `upsert` keeps the last, `insert` the first.
        """
        for row in chunk.rows:
            missing = [key for key in self._keys if row.get(key) is None]
            if missing:
                raise RowsError(failed("schema", f"a row has no value for the key column `{missing[0]}`"))
            key = self._key(row)
            if self._replaces or key not in self._fresh:
                self._fresh[key] = row

    def over(self, rows: Iterable[Row]) -> list[Row]:
        """Return existing rows with their replacements."""
        found = []
        for row in rows:
            fresh = self._fresh.pop(self._key(row), None) if all(key in row for key in self._keys) else None
            found.append(fresh if fresh is not None and self._replaces else row)
        return found

    def rest(self) -> list[Row]:
        """Return the new rows whose keys did not exist."""
        return list(self._fresh.values())

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[key]) for key in self._keys)  # a file format may return numbers as strings


def by_key(mode: str | None, key: str | list[str] | None) -> KeyedRows | None:
    """Return a merger, if the mode and key require one."""
    keys = [key] if isinstance(key, str) else list(key or ())
    return KeyedRows(keys, replaces=mode == "upsert") if keys and mode in ("upsert", "insert") else None
