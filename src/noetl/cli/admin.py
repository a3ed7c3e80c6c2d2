"""`noetl admin prune`: removes months of ended executions from a PostgreSQL store, archived first if so wished.

Tested in tests/unit/stores/test_postgres_admin.py.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.db import Db, db_url
from noetl.cli.store import call
from noetl.model.errors import InvalidInput


def command(
    action: Annotated[str, typer.Argument(metavar="prune", help="What to do.")],
    before: Annotated[
        str, typer.Option("--before", metavar="DATE", help="Months that ended before this day: 2026-01-01.")
    ],
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="DIR", help="Where logs go first, as Parquet files.")
    ] = None,
    db: Db = None,
) -> None:
    """Remove months of executions that have all ended; `noetl replay --archive` still opens what was archived."""

    async def job() -> None:
        from noetl.wiring import database_admin

        if action != "prune":
            raise InvalidInput(f"`noetl admin {action}` is not known: prune.")
        told = await database_admin(db_url(db)).prune(_ms(before), archive)
        for line in told or ["there is no whole month before that day"]:
            typer.echo(line)

    call(job)


def _ms(day: str) -> int:
    try:
        found = datetime.fromisoformat(day)
    except ValueError:
        raise InvalidInput(f"--before is a day such as 2026-01-01, and this is {day!r}.") from None
    return int(found.replace(tzinfo=found.tzinfo or UTC).timestamp() * 1000)
