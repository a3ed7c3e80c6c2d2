"""`noetl runs`: list executions, newest first.

Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import format_duration, format_time, to_json
from noetl.cli.runtime.store import read_history
from noetl.cli.runtime.terminal import echo
from noetl.ports import Selection

if TYPE_CHECKING:
    from noetl.ports import History


def command(
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="Only this status: completed, failed, running, waiting …"),
    ] = None,
    path: Annotated[str | None, typer.Option("--path", metavar="PATH", help="Only this playbook path.")] = None,
    tag: Annotated[str | None, typer.Option("--tag", metavar="TAG", help="Only executions with this tag.")] = None,
    search: Annotated[
        str | None,
        typer.Option("--search", metavar="TEXT", help="Only executions with this text in ID, path, tags or error."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of executions.")] = 20,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List executions, newest first."""

    async def job(history: History) -> list[Mapping[str, Any]]:
        wanted = Selection((status,) if status else (), path=path, tag=tag, text=search, limit=limit)
        return await history.executions(wanted)

    rows = read_history(store, job)
    if json:
        for row in rows:
            echo(to_json(row))
        return
    if not rows:
        echo("no executions")
    for row in rows:
        took = format_duration(row["ended_at"] - row["started_at"]) if row.get("ended_at") else ""
        started = format_time(row.get("started_at", 0))
        line = f"{row['execution_id']}  {row['status']:<10} {started:<9} {took:>8}  {row.get('path', '')}"
        echo(f"{line}{_answer(row)}")


def _answer(row: Mapping[str, Any]) -> str:
    """Return what an execution waits for that needs an answer from outside."""
    execution_id, signals = row["execution_id"], row.get("signals") or ()
    if row["status"] == "paused":
        return f"  waits for `noetl unpause {execution_id}`"
    if signals:
        return "  waits for " + " or ".join(f"`noetl signal {execution_id} {name}`" for name in signals)
    return f"  waits for a change: `noetl explain {execution_id}`" if row.get("needs_signal") else ""
