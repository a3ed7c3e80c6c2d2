"""`noetl db`: makes the PostgreSQL database of the store, brings it up to date, and tells what is wrong with it.

Servers do the first two by themselves when they start. Tested in tests/unit/stores/test_postgres_admin.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.common.completers import among
from noetl.cli.common.environment import environment
from noetl.cli.common.store import AsJson, as_json, call
from noetl.model.errors import InvalidInput
from noetl.settings import DB_URL

Db = Annotated[
    str | None, typer.Option("--db", metavar="URL", help=f"The database, `postgresql://…`; without it `${DB_URL}`.")
]


def command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="init|migrate|check", help="What to do.", autocompletion=among("init", "migrate", "check")
        ),
    ],
    db: Db = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Check every row too: nothing is lost, stuck or done twice.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Make the PostgreSQL database of the store, bring it up to date, or check it."""

    async def job() -> int:
        from noetl.wiring import database_admin

        admin = database_admin(db_url(db))
        if action == "check":
            told = await admin.check()
            if deep and not told:
                told = await admin.violations()
            _say_differences(told, json)
            return 1 if told else 0
        if action == "init":
            made = await admin.init()
            said = "the database is ready" if made else "the database was ready before"
            typer.echo(as_json({"made": bool(made)}) if json else said)
        elif action == "migrate":
            done = await admin.migrate()
            typer.echo(as_json({"migrations": done}) if json else f"{done} migrations done")
        else:
            raise InvalidInput(f"`noetl db {action}` is not known: init, migrate or check.")
        return 0

    raise typer.Exit(call(job))


def _say_differences(told: list[str], json: bool) -> None:
    if json:
        typer.echo(as_json({"differences": told}))
        return
    for line in told:
        typer.echo(line)
    typer.echo(f"{len(told)} differences" if told else "the database is as it should be", err=True)


def db_url(given: str | None) -> str:
    """Give the address of the database that is meant."""
    url = (given or environment().get(DB_URL, "")).strip()
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"name a database: `--db postgresql://…`, or the environment variable {DB_URL}.")
    return url
