"""`noetl replay`: folds an execution's log to any event and shows the state there, or what changed between two.

Nothing runs and nothing is written. Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.store import AsJson, Id, StorePath, as_json, history, reading
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.wiring import Store

_NOTHING = object()


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


def view(events: list[Event], seq: int) -> dict[str, Any]:
    """Give everything that is known of an execution after an event, as plain data."""
    import msgspec

    from noetl.engine.evolve import fold
    from noetl.engine.state import checksum

    if not 0 <= seq <= len(events):
        raise InvalidInput(f"there is no event {seq}: the log goes from 1 to {len(events)}.")
    state = fold(events[0].execution_id if events else "", events[:seq])
    data: dict[str, Any] = msgspec.to_builtins(state)
    last = events[seq - 1].event_type if seq else None
    return {"seq": seq, "event": last, "status": state.status, "checksum": checksum(state), **data}


def changed(before: Any, after: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Give every place where two pieces of plain data differ."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from changed(
                before.get(key, _NOTHING), after.get(key, _NOTHING), f"{path}.{key}" if path else str(key)
            )
        return
    change: dict[str, Any] = {"path": path}
    change |= {"before": before} if before is not _NOTHING else {}
    yield change | ({"after": after} if after is not _NOTHING else {})


def pretty(data: Mapping[str, Any]) -> str:
    import msgspec

    kept = {key: value for key, value in data.items() if value not in (None, {}, [], "")}
    return msgspec.json.format(msgspec.json.encode(kept), indent=2).decode()
