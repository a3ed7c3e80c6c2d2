"""`noetl admin`: what an operator does to a store.

One function per action, in a file of its own. Tested in tests/acceptance/test_admin.py and
tests/unit/stores/test_postgres_admin.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.admin.db import Db
from noetl.cli.admin.gc import gc
from noetl.cli.admin.prune import prune
from noetl.cli.admin.rebuild import rebuild
from noetl.cli.common.completers import among
from noetl.cli.common.store import AsJson, StorePath, complain
from noetl.model.errors import InvalidInput

_ACTIONS = (
    "`rebuild`: make what follows from the log again. `gc`: remove stored results that may go. "
    "`prune`: remove dead letters that were closed long ago, and months of a PostgreSQL store that have all ended."
)


def command(
    action: Annotated[
        str, typer.Argument(metavar="ACTION", help=_ACTIONS, autocompletion=among("rebuild", "gc", "prune"))
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Rebuild nothing; tell what differs from the log, and end with 1.")
    ] = False,
    store: StorePath = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="Prune months that ended before this day: 2026-01-01."),
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="DIR", help="Where pruned logs go first, as Parquet files.")
    ] = None,
    db: Db = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Collect nothing; tell what would go.")] = False,
    json: AsJson = False,
) -> None:
    """Look after a store. End servers and runs before a rebuild: all work is queued again."""
    if action == "rebuild":
        rebuild(store, check)
    elif action == "gc":
        gc(store, dry_run, json)
    elif action == "prune":
        prune(before, archive, db, store)
    else:
        error = InvalidInput(f"there is no `noetl admin {action}`; there are `rebuild`, `gc` and `prune`.")
        complain(error)
        raise typer.Exit(error.exit_code)
