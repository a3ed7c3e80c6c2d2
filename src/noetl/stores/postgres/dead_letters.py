"""Dead letters in PostgreSQL. Tested in tests/conformance/test_dead_letters.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from noetl.model.letters import DeadLetter, LetterChange
from noetl.ports.letters import LetterSelection
from noetl.stores.common.dead_letter_rows import COLUMNS, closed, conditions_of, group_of, letter_of, whole
from noetl.stores.common.queries import queries
from noetl.stores.postgres.database import PostgresDatabase
from noetl.stores.postgres.rows import WITHIN, number, text

_SQL = queries("postgres")
_CLOSED = ("message_id", "status", "closed_at", "closed_by", "note")


def letter_rows(changes: Collection[LetterChange]) -> tuple[str | None, str | None]:
    """Encode dead letters as JSON arrays, whole rows and closed ones; None if empty."""
    if not changes:
        return None, None
    rows = [{name: getattr(letter, name) for name in COLUMNS} for letter in whole(changes)]
    closed_rows = [dict(zip(_CLOSED, row, strict=True)) for row in closed(changes)]
    return (text(rows) if rows else None, text(closed_rows) if closed_rows else None)


class PostgresLetters:
    """Dead letters by message id."""

    database: PostgresDatabase

    async def letter(self, message_id: str) -> DeadLetter | None:
        rows = await self.database.rows("find_letter", message_id)
        return letter_of(rows[0]) if rows else None

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        return [letter_of(row) for row in await self._found("list_letters", selection, selection.before)]

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        return [group_of(row) for row in await self._found("group_letters", selection, None)]

    async def letter_counts(self) -> Mapping[str, int]:
        return {row[0]: row[1] for row in await self.database.rows("count_letters")}

    async def prune_letters(self, before: int) -> int:
        return len(await self.database.rows("prune_letters", before))

    async def _found(self, name: str, selection: LetterSelection, before: str | None) -> list[Any]:
        wanted = conditions_of(selection)
        if "execution_id" in wanted:
            wanted["execution_id"] = number(wanted["execution_id"])
            if wanted["execution_id"] is None:
                return []
        conditions = [
            f"status = ANY (${place}::text[])" if column == "status" else f"{column} = ${place}"
            for place, column in enumerate(wanted, 2)
        ]
        values = list(wanted.values())
        if selection.within is not None:
            conditions.append(WITHIN.format(f"${len(values) + 2}"))
            values.append(selection.within)
        if before is not None:
            place = f"(SELECT last_seen, message_id FROM dlq WHERE message_id = ${len(values) + 2})"
            conditions.append(f"(last_seen, message_id) < {place}")
            values.append(before)
        text = _SQL[name].replace("attempts > -1", " AND ".join(("attempts > -1", *conditions)))
        async with self.database.connection() as connection:
            return list(await connection.fetch(text, selection.limit, *values))
