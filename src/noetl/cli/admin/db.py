"""`noetl db`: create, migrate and check the PostgreSQL database of the store.

Servers create and migrate the database when they start. Tested in tests/unit/stores/postgres/test_admin.py.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Db
from noetl.cli.output.format import to_json
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput
from noetl.settings import DB_URL, FILE

command = command_group("Create, migrate and check the PostgreSQL database of the store.")


@command.command("init")
def init(db: Db = None, json: AsJson = False) -> None:
    """Create the tables, if they do not exist."""

    async def job() -> None:
        from noetl.wiring.embedded import database_admin

        created = await database_admin(require_database(db)).init()
        message = "database created" if created else "database already exists"
        echo(to_json({"made": bool(created)}) if json else message)

    call(job)


@command.command("migrate")
def migrate(db: Db = None, json: AsJson = False) -> None:
    """Apply pending schema migrations."""

    async def job() -> None:
        from noetl.wiring.embedded import database_admin

        count = await database_admin(require_database(db)).migrate()
        echo(to_json({"migrations": count}) if json else f"{count} migrations applied")

    call(job)


@command.command("check")
def check(
    db: Db = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check every row: nothing lost, stuck or done twice.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check the schema. Exits with 1 if it is not what NoETL expects."""

    async def job() -> int:
        from noetl.wiring.embedded import database_admin

        admin = database_admin(require_database(db))
        differences = await admin.check()
        if deep and not differences:
            differences = await admin.violations()
        if json:
            echo(to_json({"differences": differences}))
        else:
            for line in differences:
                echo(line)
            echo(f"{len(differences)} differences" if differences else "no differences", err=True)
        return 1 if differences else 0

    raise typer.Exit(call(job))


def require_database(given: str | None) -> str:
    """Return the database URL of `--db` or the environment. Raises InvalidInput."""
    url = (given or environment().get(DB_URL, "")).strip()
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"No database given. Use --db @FILE with its URL, or set {DB_URL} or {DB_URL}{FILE}.")
    return url
