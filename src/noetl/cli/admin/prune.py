"""`noetl admin prune`: removes closed dead letters, and months of ended executions from a PostgreSQL store.

Months are archived first if so wished. Tested in tests/unit/stores/test_postgres_admin.py and
tests/acceptance/test_dlq_cli.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from time import time

import typer

from noetl.cli.admin.db import db_url
from noetl.cli.common.store import call, existing, local_settings
from noetl.model.errors import InvalidInput

_DAY_MS = 86_400_000


def prune(before: str | None, archive: Path | None, db: str | None, store: str | None) -> None:
    """Remove what ended long ago; `noetl replay --archive` still opens what was archived.

    Without a day, and in a store that is a file, only dead letters go.
    """

    async def job() -> None:
        from noetl.wiring import database_admin, open_store

        day = None if before is None else _ms(before)
        found = local_settings(store if db is None else db_url(db))
        if found.database and day is not None:
            told = await database_admin(found.database).prune(day, archive)
            for line in told or ["there is no whole month before that day"]:
                typer.echo(line)
        opened = open_store(existing(found))
        try:
            count = await opened.prune_letters(int(time() * 1000) - found.dlq_days * _DAY_MS if day is None else day)
        finally:
            await opened.close()
        if count or day is None:
            typer.echo(f"closed dead letters removed: {count}")

    call(job)


def _ms(day: str) -> int:
    try:
        found = datetime.fromisoformat(day)
    except ValueError:
        raise InvalidInput(f"--before is a day such as 2026-01-01, and this is {day!r}.") from None
    return int(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000)
