"""`noetl replay`: folds an execution's log to any event and shows the state there, or what changed between two.

Nothing runs and nothing is written. Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import AsJson, Place, as_json, call, reading, the_id

if TYPE_CHECKING:
    from noetl.ports import History


def command(
    id: Id,
    to: Annotated[
        int | None, typer.Option("--to", metavar="SEQ", help="The event to stop after; else the last.")
    ] = None,
    diff: Annotated[
        int | None, typer.Option("--diff", metavar="SEQ", help="Show what changed since this event.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="PLACE", help="Read a Parquet file or a folder of them instead.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Show the state of an execution at any event, or what changed between two."""

    def show(after: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
        from noetl.engine.view import changed

        if before is None:
            typer.echo(as_json(after) if json else pretty(after))
            return
        changes = [] if before == after else list(changed(before, after))
        if json:
            typer.echo(as_json({"from": diff, "to": after["seq"], "changes": changes}))
            return
        for change in changes:
            was, now = (as_json(change[key]) if key in change else "nothing" for key in ("before", "after"))
            typer.echo(f"{change['path']}: {was} → {now}")

    async def from_store(opened: History) -> None:
        from noetl.cli.common.garbage import settle
        from noetl.ports.replay import views

        settle()
        show(*await views(opened, await the_id(opened, id), to, diff))

    async def from_archive() -> None:
        from noetl.engine.view import view
        from noetl.wiring import archived

        events = archived(archive or Path(), id)
        show(view(events, len(events) if to is None else to), None if diff is None else view(events, diff))

    if archive is None:
        reading(store, from_store)
    else:
        call(from_archive)


def pretty(data: Mapping[str, Any]) -> str:
    import msgspec

    kept = {key: value for key, value in data.items() if value not in (None, {}, [], "")}
    return msgspec.json.format(msgspec.json.encode(kept), indent=2).decode()
