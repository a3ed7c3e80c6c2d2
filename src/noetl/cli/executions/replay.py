"""`noetl replay`: print the state of an execution at an event, or diff two.

Runs and writes nothing. Tested in tests/acceptance/executions/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.output.format import to_json, to_pretty_json
from noetl.cli.runtime.environment import reader_mask
from noetl.cli.runtime.runner import call, tune_gc
from noetl.cli.runtime.store import read_history, resolve_id
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl.ports import History


def command(
    id: ExecutionId,
    to: Annotated[
        int | None, typer.Option("--to", metavar="SEQ", help="Event to stop after. [default: the last one]")
    ] = None,
    diff: Annotated[
        int | None, typer.Option("--diff", metavar="SEQ", help="Print what changed since this event.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="PLACE", help="Read a Parquet file or a folder of them instead.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Show the state of an execution at any event, or diff two."""

    def show(after: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
        from noetl.engine.queries.view import changed

        if before is None:
            non_empty = {key: value for key, value in after.items() if value not in (None, {}, [], "")}
            echo(to_json(after) if json else to_pretty_json(non_empty))
            return
        changes = [] if before == after else list(changed(before, after))
        if json:
            echo(to_json({"from": diff, "to": after["seq"], "changes": changes}))
            return
        for change in changes:
            shown = reader_mask().data(change)
            old, new = (to_json(shown[key]) if key in shown else "nothing" for key in ("before", "after"))
            echo(f"{change['path']}: {old} → {new}")

    async def from_store(history: History) -> None:
        tune_gc()
        show(*await _views(history, await resolve_id(history, id), to, diff))

    async def from_archive() -> None:
        from noetl.engine.queries.view import view
        from noetl.wiring.embedded import archived

        events = archived(archive or Path(), id)
        show(view(events, len(events) if to is None else to), None if diff is None else view(events, diff))

    if archive is None:
        read_history(store, from_store)
    else:
        call(from_archive)


async def _views(
    history: History, execution_id: str, to: int | None, diff: int | None
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    if hasattr(history, "view"):  # a server folds its own log: what it sends is masked
        return await history.view(execution_id, to), None if diff is None else await history.view(execution_id, diff)
    from noetl.ports.replay import views

    return await views(history, execution_id, to, diff)
