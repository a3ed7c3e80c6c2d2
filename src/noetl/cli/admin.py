"""`noetl admin`: what an operator does to a store.

One function per action, in a file of its own. Tested in tests/unit/stores/test_postgres_admin.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.db import Db
from noetl.cli.prune import prune
from noetl.cli.store import complain
from noetl.model.errors import InvalidInput


def command(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help="`prune`: remove months of a PostgreSQL store that have all ended.")
    ],
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="Prune months that ended before this day: 2026-01-01."),
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="DIR", help="Where pruned logs go first, as Parquet files.")
    ] = None,
    db: Db = None,
) -> None:
    """Look after a store."""
    if action != "prune":
        error = InvalidInput(f"there is no `noetl admin {action}`; there is `noetl admin prune`.")
        complain(error)
        raise typer.Exit(error.exit_code)
    prune(before, archive, db)
