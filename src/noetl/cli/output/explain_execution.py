"""Prints why an execution is where it is, for `noetl explain ID`: what has not ended, what it waits for, and how it came here.

The facts are `noetl.engine.explain`. Tested in tests/acceptance/test_run_commands.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import typer
from msgspec import to_builtins

from noetl.cli.common.store import as_json as one_line
from noetl.cli.common.store import driver_of, plan_of, reading, state_of
from noetl.cli.output.progress import clock, seconds
from noetl.engine.decision import needs_signal, status_of
from noetl.engine.explain import Choice, Standing, choices, standings, values
from noetl.server.attendance import groups
from noetl.wiring import SystemClock, open_team

if TYPE_CHECKING:
    from noetl.engine.state import Execution
    from noetl.ports import History, WorkerInfo
    from noetl.wiring import Store

_LAST_CHOICES = 12


def show(given: str, store: str | None, *, as_json: bool) -> None:
    """Explain an execution."""

    async def job(opened: History) -> None:
        state, events = await state_of(opened, given)
        now, pools = SystemClock().now(), None
        if not state.pool.startswith("local:"):  # those have a driver of their own
            pools = groups(await _workers(opened), now)
        found = standings(await plan_of(opened, state), state, events, pools, now) if state.phase != "ended" else ()
        made = choices(events)
        driver = driver_of(store, state)
        if as_json:
            data: dict[str, Any] = {
                "execution_id": state.execution_id,
                "status": status_of(state),
                "error": state.error,
                "failed_items": state.partial,
            }
            data |= {
                "driven_by": driver,
                "standing": [to_builtins(one) for one in found],
                "choices": [to_builtins(one) for one in made],
            }
            typer.echo(one_line(data))
            return
        for text in (*_head(state, driver), *_standing(found), *_way(made)):
            typer.echo(text)

    reading(store, job)


async def _workers(opened: History) -> list[WorkerInfo]:
    """Give the workers of a store or of a server."""
    if hasattr(opened, "workers"):
        return list(await opened.workers())
    return await open_team(cast("Store", opened)).workers()


def _head(state: Execution, driver: str | None) -> Iterator[str]:
    yield f"execution {state.execution_id} of {state.path}: {status_of(state)}"
    if state.phase == "ended":
        yield f"It ended at {clock(state.ended_at)}, after {seconds(state.ended_at - state.started_at)}."
    elif driver is not None:
        yield f"Process {driver} drives it."
    elif state.pool and not needs_signal(state):
        yield f"No process drives it; `noetl resume {state.execution_id}` does."
    if state.paused:
        yield f"It is paused: nothing new is scheduled until `noetl unpause {state.execution_id}`."
    for failure in state.failures:
        error = failure.get("error") or {}
        yield f"Step {failure['step']} failed: {error.get('kind', '')}: {error.get('message', '')}"
    for run_id, count in state.partial.items():
        items = "1 item" if count == 1 else f"{count:,} items"
        yield f"{items} of {run_id} failed for good: `noetl dlq groups --execution {state.execution_id}` tells of what."
    if state.error is not None and not state.failures:
        yield f"{state.error.get('kind', '')}: {state.error.get('message', '')}"


def _standing(found: tuple[Standing, ...]) -> Iterator[str]:
    if found:
        yield "\nWhat has not ended:"
    for one in found:
        yield f"  {one.what} {one.name} at {one.step}"
        yield f"    waits for  {one.waits_for}"
        if one.read:
            yield f"    it read    {values(one.read)}"
        yield f"    since      {clock(one.since)}"
        yield f"    until      {clock(one.until) if one.until is not None else 'no time is set'}"
        for limit in one.deadlines:
            time = f"{clock(limit.at)} " if limit.at is not None else ""
            span = f", {limit.ms / 1000:g} s" if limit.ms is not None else ""
            yield f"    time-out   {time}{limit.what}{span}"
        yield f"    moved by   {one.moved_by}"


def _way(made: tuple[Choice, ...]) -> Iterator[str]:
    if made:
        yield "\nHow it came here:"
    if len(made) > _LAST_CHOICES:
        yield f"  … {len(made) - _LAST_CHOICES} earlier decisions; --json gives all"
    for one in made[-_LAST_CHOICES:]:
        yield f"  {clock(one.at)} #{one.seq} {one.step}: {one.decided}"
        yield from (f"      {reason}" for reason in one.because)
