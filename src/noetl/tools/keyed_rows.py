"""Rows that meet those of a file by a key: a file has none of its own, so whoever writes to it brings the rows together.

Only the new rows are held. Tested in tests/tools/test_transfer.py and test_artifact.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from noetl.model.outcome import failed
from noetl.tools.tables import RowsError

Row = dict[str, Any]


class KeyedRows:
    """New rows by their key; `upsert` puts them in the place of those that are there, `insert` leaves those alone."""

    def __init__(self, keys: Sequence[str], *, replaces: bool) -> None:
        self._keys = keys
        self._replaces = replaces
        self._fresh: dict[tuple[str, ...], Row] = {}

    async def add(self, rows: list[Row]) -> None:
        """Take new rows; of those with one key, the last counts where rows are replaced, else the first. Raises RowsError."""
        for row in rows:
            missing = [key for key in self._keys if row.get(key) is None]
            if missing:
                raise RowsError(failed("schema", f"a row has no `{missing[0]}`, which is its key"))
            key = self._key(row)
            if self._replaces or key not in self._fresh:
                self._fresh[key] = row

    def over(self, rows: Iterable[Row]) -> list[Row]:
        """Give rows that are there as they will be."""
        found = []
        for row in rows:
            fresh = self._fresh.pop(self._key(row), None) if all(key in row for key in self._keys) else None
            found.append(fresh if fresh is not None and self._replaces else row)
        return found

    def rest(self) -> list[Row]:
        """Give the new rows whose keys were not there."""
        return list(self._fresh.values())

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[key]) for key in self._keys)  # a format may give numbers back as texts


def by_key(mode: str | None, key: str | list[str] | None) -> KeyedRows | None:
    """Give what brings rows together, where a mode and a key ask for it."""
    keys = [key] if isinstance(key, str) else list(key or ())
    return KeyedRows(keys, replaces=mode == "upsert") if keys and mode in ("upsert", "insert") else None
