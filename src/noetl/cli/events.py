"""`noetl events`: prints the log of an execution, whole or as it grows.

With `--json` one object per line: the event's envelope with every key, and its `step`. Tested in
tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.store import AsJson, Id, StorePath, as_json, reading, the_id
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.model.events import Event
    from noetl.wiring import Store

_LOOK_S = 0.1
_ENDED = frozenset({"completed", "failed", "cancelled", "partial"})
_MOST_SHOWN = 160


def command(
    id: Id,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until the execution has ended.")] = False,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="NAME", help="Only these: step.done, step.*, StepDone. May be given often."),
    ] = None,
    json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Print the log of an execution."""

    async def job(opened: Store) -> None:
        from asyncio import sleep

        wanted = types(type) if type else None
        execution_id, after = await the_id(opened, id), 0
        while True:
            row = await opened.execution(execution_id)
            for event in await opened.read(execution_id, after):
                after = event.seq
                if wanted is None or event.event_type in wanted:
                    typer.echo(as_json(envelope(event)) if json else line(event))
            if not follow or (row is not None and row.get("status") in _ENDED and after >= row["last_seq"]):
                return
            await sleep(_LOOK_S)

    reading(store, job)


def types(given: Iterable[str]) -> frozenset[str]:
    """Give the event types that are meant: by name, older name, display name, or `step.*`."""
    from noetl.model.events import CANONICAL, EVENT_TYPES

    displayed = {kind.display: name for name, kind in EVENT_TYPES.items()}
    found: set[str] = set()
    for word in given:
        name = CANONICAL.get(word, displayed.get(word, word))
        matching = {
            known for known in EVENT_TYPES if known == name or (name.endswith("*") and known.startswith(name[:-1]))
        }
        if not matching:
            raise InvalidInput(f"there is no event type `{word}`; these there are: {', '.join(EVENT_TYPES)}.")
        found |= matching
    return frozenset(found)


def envelope(event: Event) -> dict[str, Any]:
    """Give an event as programs read it: every key, and the step it belongs to."""
    return {name: getattr(event, name) for name in event.__struct_fields__} | {"step": step_of(event)}


def step_of(event: Event) -> str | None:
    """Give the step that an event belongs to."""
    if event.step_run_id is not None:
        return event.step_run_id.partition("#")[0]
    if event.entity_type in ("step", "loop"):
        return event.entity_id or None
    named = event.payload.get("step")
    return named if isinstance(named, str) else None


def line(event: Event) -> str:
    """Write an event on one line for people."""
    from noetl.cli.progress import clock

    item = "" if event.iteration is None else f"[{event.iteration}]"
    place = f"{event.step_run_id or ''}{item}".removesuffix("#1")
    what = event.entity_id if event.entity_id not in (event.execution_id, step_of(event)) else ""
    payload = as_json(event.payload) if event.payload else ""
    shown = payload if len(payload) <= _MOST_SHOWN else payload[:_MOST_SHOWN] + "…"
    return " ".join(
        part for part in (f"{event.seq:>5} {clock(event.timestamp)} {event.event_type:<26}", place, what, shown) if part
    )
