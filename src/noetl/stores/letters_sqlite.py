"""Dead letters in a SQLite file. Tested in tests/conformance/test_dead_letters.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from noetl.model.letters import DeadLetter, LetterChange
from noetl.ports.letters import LetterSelection
from noetl.stores.database import Database
from noetl.stores.letter_rows import closed, group_of, letter_of, narrowed, row_of, whole
from noetl.stores.queries import queries

_SQL = queries("sqlite")


def put_letters(connection: sqlite3.Connection, changes: Collection[LetterChange]) -> None:
    """Write what changes about dead letters, in the transaction that has begun."""
    for letter in whole(changes):
        connection.execute(_SQL["put_letter"], row_of(letter))
    for message_id, *rest in closed(changes):
        connection.execute(_SQL["close_letter"], (*rest, message_id))


class SqliteLetters:
    """Work that failed for good, by id."""

    database: Database

    async def letter(self, message_id: str) -> DeadLetter | None:
        rows = await self._found("find_letter", (), [message_id])
        return letter_of(rows[0]) if rows else None

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        conditions, given = _conditions(selection)
        if selection.before is not None:
            conditions.append("(last_seen, message_id) < (SELECT last_seen, message_id FROM dlq WHERE message_id = ?)")
            given.append(selection.before)
        return [letter_of(row) for row in await self._found("list_letters", conditions, [*given, selection.limit])]

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        conditions, given = _conditions(selection)
        return [group_of(row) for row in await self._found("group_letters", conditions, [*given, selection.limit])]

    async def letter_counts(self) -> Mapping[str, int]:
        return dict(await self._found("count_letters", (), []))

    async def prune_letters(self, before: int) -> int:
        given = (before,)
        return await self.database.write(lambda connection: connection.execute(_SQL["prune_letters"], given).rowcount)

    async def _found(self, name: str, conditions: Collection[str], given: list[Any]) -> list[Any]:
        text = _SQL[name].replace("attempts > -1", " AND ".join(("attempts > -1", *conditions)))
        return await self.database.run(lambda connection: connection.execute(text, given).fetchall())


def _conditions(selection: LetterSelection) -> tuple[list[str], list[Any]]:
    asked = narrowed(selection)
    status = asked.pop("status", [])
    conditions = [f"{name} = ?" for name in asked]
    conditions += [f"status IN ({', '.join('?' * len(status))})"] if status else []
    return conditions, [*asked.values(), *status]
