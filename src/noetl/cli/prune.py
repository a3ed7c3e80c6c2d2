"""`noetl admin prune`: removes months of ended executions from a PostgreSQL store, archived first if so wished.

Tested in tests/unit/stores/test_postgres_admin.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import typer

from noetl.cli.db import db_url
from noetl.cli.store import call
from noetl.model.errors import InvalidInput


def prune(before: str | None, archive: Path | None, db: str | None) -> None:
    """Remove what ended long ago; `noetl replay --archive` still opens what was archived."""

    async def job() -> None:
        from noetl.wiring import database_admin

        told = await database_admin(db_url(db)).prune(_ms(before), archive)
        for line in told or ["there is no whole month before that day"]:
            typer.echo(line)

    call(job)


def _ms(day: str | None) -> int:
    try:
        found = datetime.fromisoformat(day or "")
    except ValueError:
        raise InvalidInput(f"--before is a day such as 2026-01-01, and this is {day!r}.") from None
    return int(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000)
