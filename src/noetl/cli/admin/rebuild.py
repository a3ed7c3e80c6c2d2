"""`noetl admin rebuild`: makes the tables that follow from the log again, or only tells where they differ from it.

Tested in tests/acceptance/test_admin.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from noetl.cli.common.store import call, in_store

if TYPE_CHECKING:
    from noetl.wiring import Store


def rebuild(store: str | None, check: bool) -> None:
    """Make the tables of a store again; with `check`, change nothing and end with 1 where something differs."""

    async def job(opened: Store) -> list[str]:
        from noetl.wiring import open_rebuild

        made = open_rebuild(opened)
        if check:
            return await made.check()
        typer.echo(f"made again from the log: {await made.rebuild()} executions")
        return []

    found = call(lambda: in_store(store, job))
    for line in found:
        typer.echo(line)
    if found:
        typer.echo(f"noetl: {len(found)} differences; `noetl admin rebuild` makes the tables again.", err=True)
        raise typer.Exit(1)
    if check:
        typer.echo("every table is what follows from the log")
