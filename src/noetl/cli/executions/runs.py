"""`noetl runs`: lists the executions of a store, the newest first.

Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.store import AsJson, Place, as_json, reading
from noetl.ports import Selection

if TYPE_CHECKING:
    from noetl.ports import History


def command(
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only those that are completed, failed, running …")
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="Only those of this playbook.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only those with this tag.")] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="TEXT", help="Only those with this in their id, path, tags or error."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many.")] = 20,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List executions, the newest first."""

    async def job(opened: History) -> list[Mapping[str, Any]]:
        wanted = Selection((status,) if status else (), path=path, tag=tag, text=search, limit=limit)
        return await opened.executions(wanted)

    rows = reading(store, job)
    if json:
        for row in rows:
            typer.echo(as_json(row))
        return
    from noetl.cli.output.progress import clock, seconds

    if not rows:
        typer.echo("no executions")
    for row in rows:
        took = seconds(row["ended_at"] - row["started_at"]) if row.get("ended_at") else ""
        started = clock(row.get("started_at", 0))
        typer.echo(f"{row['execution_id']}  {row['status']:<10} {started:<9} {took:>8}  {row.get('path', '')}")
