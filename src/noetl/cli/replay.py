"""`noetl replay`: folds an execution's log to any event and shows the state there, or what changed between two.

Nothing runs and nothing is written. Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.store import AsJson, Id, StorePath, as_json, history, reading

if TYPE_CHECKING:
    from noetl.wiring import Store


def command(
    id: Id,
    to: Annotated[
        int | None, typer.Option("--to", metavar="SEQ", help="The event to stop after; else the last.")
    ] = None,
    diff: Annotated[
        int | None, typer.Option("--diff", metavar="SEQ", help="Show what changed since this event.")
    ] = None,
    json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Show the state of an execution at any event, or what changed between two."""

    async def job(opened: Store) -> None:
        from noetl.engine.view import changed, view

        events = await history(opened, id)
        after = view(events, len(events) if to is None else to)
        if diff is None:
            typer.echo(as_json(after) if json else pretty(after))
            return
        before = view(events, diff)
        changes = [] if before == after else list(changed(before, after))
        if json:
            typer.echo(as_json({"from": diff, "to": after["seq"], "changes": changes}))
            return
        for change in changes:
            was, now = (as_json(change[key]) if key in change else "nothing" for key in ("before", "after"))
            typer.echo(f"{change['path']}: {was} → {now}")

    reading(store, job)


def pretty(data: Mapping[str, Any]) -> str:
    import msgspec

    kept = {key: value for key, value in data.items() if value not in (None, {}, [], "")}
    return msgspec.json.format(msgspec.json.encode(kept), indent=2).decode()
