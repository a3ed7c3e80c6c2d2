"""Dead letters in a SQLite file. Tested in tests/conformance/test_dead_letters.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import Any

from noetl.model.letters import DeadLetter, LetterChange
from noetl.ports.letters import LetterSelection
from noetl.stores.common.dead_letter_rows import closed, conditions_of, group_of, letter_of, row_of, whole
from noetl.stores.common.queries import queries
from noetl.stores.sqlite.database import Database
from noetl.stores.sqlite.rows import WITHIN, text

_SQL = queries("sqlite")


def put_letters(connection: sqlite3.Connection, changes: Collection[LetterChange]) -> None:
    """Write changed dead letters in the open transaction."""
    for letter in whole(changes):
        connection.execute(_SQL["put_letter"], row_of(letter))
    for message_id, *rest in closed(changes):
        connection.execute(_SQL["close_letter"], (*rest, message_id))


class SqliteLetters:
    """Dead letters by message id."""

    database: Database

    async def letter(self, message_id: str) -> DeadLetter | None:
        rows = await self._found("find_letter", (), [message_id])
        return letter_of(rows[0]) if rows else None

    async def letters(self, selection: LetterSelection) -> list[DeadLetter]:
        conditions, values = _conditions(selection)
        if selection.before is not None:
            conditions.append("(last_seen, message_id) < (SELECT last_seen, message_id FROM dlq WHERE message_id = ?)")
            values.append(selection.before)
        return [letter_of(row) for row in await self._found("list_letters", conditions, [*values, selection.limit])]

    async def letter_groups(self, selection: LetterSelection) -> list[Mapping[str, Any]]:
        conditions, values = _conditions(selection)
        return [group_of(row) for row in await self._found("group_letters", conditions, [*values, selection.limit])]

    async def letter_counts(self) -> Mapping[str, int]:
        return dict(await self._found("count_letters", (), []))

    async def prune_letters(self, before: int) -> int:
        values = (before,)
        return await self.database.write(lambda connection: connection.execute(_SQL["prune_letters"], values).rowcount)

    async def _found(self, name: str, conditions: Collection[str], values: list[Any]) -> list[Any]:
        text = _SQL[name].replace("attempts > -1", " AND ".join(("attempts > -1", *conditions)))
        return await self.database.run(lambda connection: connection.execute(text, values).fetchall())


def _conditions(selection: LetterSelection) -> tuple[list[str], list[Any]]:
    wanted = conditions_of(selection)
    status = wanted.pop("status", [])
    conditions = [f"{name} = ?" for name in wanted]
    conditions += [f"status IN ({', '.join('?' * len(status))})"] if status else []
    within = [] if selection.within is None else [text(selection.within)]
    conditions += [WITHIN] if within else []
    return conditions, [*wanted.values(), *status, *within]
